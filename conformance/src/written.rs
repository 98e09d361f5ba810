//! A file to write, and a check that the written file equals it.

use zt::formats::PlaneCoding;
use zt::{
    Attributes, Compression, DType, DigestAlgorithm, File, NewObject, OpenOptions, Tensor, Verify,
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
    /// Whether equal components share a blob.
    pub deduplicate: bool,
    /// How dense objects of floats are written as planes, if they are.
    pub planes: Option<PlaneCoding>,
}

impl Options {
    /// For a writer.
    pub fn write_options(&self) -> WriteOptions {
        let mut options = WriteOptions::new();
        if let Some(coding) = self.planes {
            options = options.planes_in(coding);
        }
        options = options
            .digest(self.digest)
            .compression(self.compression)
            .deduplicate(self.deduplicate)
            .empty_names(true);
        match self.alignment {
            Some(alignment) => options.alignment(alignment),
            None => options,
        }
    }
}

impl NewFile {
    /// The bytes that so many threads write; by default, all cores.
    ///
    /// # Errors
    ///
    /// Where the writer refuses an object.
    pub fn write(&self, threads: impl Into<Option<usize>>) -> zt::Result<Vec<u8>> {
        let mut options = self.options.write_options();
        if let Some(threads) = threads.into() {
            options = options.threads(threads);
        }
        let mut bytes = Vec::new();
        let mut writer = options.to_writer(&mut bytes)?;
        if let Some(attributes) = &self.attributes {
            writer.set_attributes(attributes.clone()).unwrap();
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
        let file = options.open_bytes(bytes.to_vec()).expect("what was written opens");
        assert_eq!(file.layout(), Some("1.2"));
        assert_eq!(file.version(), Some("1.2.0"));
        assert_eq!(file.attributes().unwrap(), self.attributes);
        assert_eq!(file.len(), self.objects.len());
        for (name, object) in &self.objects {
            assert_object(&file, name, object);
        }
        if !self.options.deduplicate {
            self.assert_order(&file);
        }
        let strict = VerifyOptions::new().strict(true);
        let report = file.verify(&strict).expect("nobody interrupts");
        assert!(report.is_ok(), "{:?}", report.problems);
        assert_eq!(report.warnings, []);
        let components: usize = file
            .entries()
            .iter()
            .filter_map(|entry| Some(entry.object().ok()?.components.len()))
            .sum();
        assert_eq!(report.components, components as u64);
        let unverified = if self.options.digest.is_none() { components } else { 0 };
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
        let listed = entries.iter().map(|entry| entry.name()).filter(|name| has_data(name));
        let written =
            self.objects.iter().map(|(name, _)| name.as_str()).filter(|name| has_data(name));
        assert!(listed.eq(written), "listed in another order than written");
    }
}

/// Holds the object of that name against the one that was written, which may have been split into
/// planes.
///
/// # Panics
///
/// Where they differ.
pub fn assert_object(file: &File, name: &str, object: &NewObject<'_>) {
    let tensor = file.tensor(name).expect("what was written reads");
    assert_eq!(tensor.shape(), &*object.shape);
    if tensor.format() != object.format {
        return assert_is_split(&tensor, object);
    }
    assert_eq!(tensor.object().attributes, object.attributes);
    assert!(tensor.object().extra.is_empty());
    assert_eq!(tensor.components().count(), object.components.len());
    for (role, elements) in &object.components {
        let component = tensor.component(role).expect("every role that was written");
        assert_eq!(component.dtype, Some(elements.dtype));
        assert_eq!(component.logical_type.as_deref(), elements.logical_type());
        assert!(component.blob.span.is_aligned());
        assert_eq!(*tensor.bytes(role).expect("what was written reads"), *elements.bytes);
        if elements.dtype == DType::Bool {
            let read = tensor.elements(role).unwrap();
            assert!(read.as_slice::<bool>().is_ok());
        }
    }
}

fn assert_is_split(tensor: &Tensor<'_>, object: &NewObject<'_>) {
    assert!(PlaneCoding::from_format(tensor.format()).is_some() && object.format == "dense");
    let dense = tensor.to_dense().expect("what was written reads");
    let (_, data) = &object.components[0];
    assert_eq!(dense.elements().dtype, data.dtype);
    assert_eq!(dense.elements().logical_type(), data.logical_type());
    assert!(*dense.elements().bytes == *data.bytes);
    for (key, value) in object.attributes.iter().flatten() {
        assert_eq!(tensor.attributes().iter().find(|(known, _)| *known == key), Some((key, value)));
    }
}
