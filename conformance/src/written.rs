//! A file that is to be written, and whether what was written is it.

use zt::{
    Attributes, Compression, DType, DigestAlgorithm, File, NewObject, OpenOptions, Verify,
    VerifyOptions, WriteOptions,
};

/// Objects in order, attributes, and how they are stored.
#[derive(Debug, Clone)]
pub struct NewFile {
    /// Of the file.
    pub attributes: Option<Attributes>,
    /// By name.
    pub objects: Vec<(String, NewObject<'static>)>,
    /// How all of them are stored.
    pub options: Options,
}

/// How components are stored.
#[derive(Debug, Clone, Copy)]
pub struct Options {
    /// The digest of each, if any.
    pub digest: Option<DigestAlgorithm>,
    /// Raw or zstd.
    pub compression: Compression,
    /// The default, or a power of two.
    pub alignment: Option<u64>,
}

impl NewFile {
    /// The bytes that so many threads write; by default, all cores.
    ///
    /// # Errors
    ///
    /// Where the writer refuses an object.
    pub fn write(&self, threads: impl Into<Option<usize>>) -> zt::Result<Vec<u8>> {
        let Options {
            digest,
            compression,
            alignment,
        } = self.options;
        let mut options = WriteOptions::new().digest(digest).compression(compression);
        if let Some(alignment) = alignment {
            options = options.alignment(alignment);
        }
        if let Some(threads) = threads.into() {
            options = options.threads(threads);
        }
        let mut bytes = Vec::new();
        let mut writer = options.to_writer(&mut bytes)?;
        if let Some(attributes) = &self.attributes {
            writer.set_attributes(attributes.clone());
        }
        for (name, object) in &self.objects {
            writer.add(name, object)?;
        }
        writer.finish()?;
        Ok(bytes)
    }

    /// Holds `bytes` against this, value for value.
    ///
    /// # Panics
    ///
    /// Where they differ.
    pub fn assert_is(&self, bytes: &[u8]) {
        let options = OpenOptions::new().strict(true).verify(Verify::Always);
        let file = options
            .open_bytes(bytes.to_vec())
            .expect("what was written opens");
        assert_eq!(file.layout(), Some("1.2"));
        assert_eq!(file.version(), Some("1.2.0"));
        assert_eq!(file.attributes().unwrap(), self.attributes);
        assert_eq!(file.len(), self.objects.len());
        for (name, object) in &self.objects {
            assert_object(&file, name, object);
        }
        self.assert_order(&file);
        let mut strict = VerifyOptions::default();
        strict.strict = true;
        let report = file.verify(&strict).expect("nobody interrupts");
        assert!(report.is_ok(), "{:?}", report.problems);
        assert_eq!(report.warnings, []);
        let components: usize = self
            .objects
            .iter()
            .map(|(_, object)| object.components.len())
            .sum();
        assert_eq!(report.components, components as u64);
        let unverified = if self.options.digest.is_none() {
            components
        } else {
            0
        };
        assert_eq!(report.unverified.len(), unverified);
    }

    /// Objects with data are listed in the order they were written.
    fn assert_order(&self, file: &File) {
        let has_data = |name: &str| {
            let object = self.objects.iter().find(|(known, _)| known == name);
            object.is_some_and(|(_, object)| {
                object.components.iter().any(|(_, c)| !c.bytes.is_empty())
            })
        };
        let entries = file.entries();
        let listed = entries
            .iter()
            .map(|entry| entry.name())
            .filter(|name| has_data(name));
        let written = self
            .objects
            .iter()
            .map(|(name, _)| name.as_str())
            .filter(|name| has_data(name));
        assert!(listed.eq(written), "listed in another order than written");
    }
}

fn assert_object(file: &File, name: &str, object: &NewObject<'_>) {
    let tensor = file.tensor(name).expect("what was written reads");
    assert_eq!(tensor.shape(), &*object.shape);
    assert_eq!(tensor.format(), object.format);
    assert_eq!(tensor.object().attributes, object.attributes);
    assert!(tensor.object().extra.is_empty());
    assert_eq!(tensor.components().count(), object.components.len());
    for (role, elements) in &object.components {
        let component = tensor.component(role).expect("every role that was written");
        assert_eq!(component.dtype, Some(elements.dtype));
        assert_eq!(component.logical_type.as_deref(), elements.logical_type());
        assert!(component.blob.span.is_aligned());
        assert_eq!(
            *tensor.bytes(role).expect("what was written reads"),
            *elements.bytes
        );
        if elements.dtype == DType::Bool {
            let read = tensor.elements(role).unwrap();
            assert!(read.as_slice::<bool>().is_ok());
        }
    }
}
