//! Zip archives put together from parts, by code that shares nothing with the reader under test.

/// An archive of these members, stored as they are, each a name and a content. Checksums are 0.
///
/// # Panics
///
/// Where a content has 4 GiB or more: that would need zip64.
#[must_use]
pub fn stored(members: &[(&str, &[u8])]) -> Vec<u8> {
    let (mut archive, mut directory) = (Vec::new(), Vec::new());
    for (name, content) in members {
        let len = u32::try_from(content.len()).expect("less than 4 GiB");
        let place = archive.len() as u32;
        // Version 2.0, no flags, stored, midnight of 1 January 1980, no checksum.
        let mut fields = vec![20, 0, 0, 0, 0, 0, 0, 0, 0x21, 0, 0, 0, 0, 0];
        fields.extend([len.to_le_bytes(), len.to_le_bytes()].concat());
        fields.extend((name.len() as u16).to_le_bytes());
        // No extra field.
        fields.extend([0, 0]);
        archive.extend([b"PK\x03\x04", &fields[..], name.as_bytes(), content].concat());
        directory.extend([&b"PK\x01\x02\x14\0"[..], &fields, &[0; 10]].concat());
        directory.extend(place.to_le_bytes());
        directory.extend(name.as_bytes());
    }
    let count = (members.len() as u16).to_le_bytes();
    let numbers = [directory.len() as u32, archive.len() as u32].map(u32::to_le_bytes);
    let end = [b"PK\x05\x06\0\0\0\0", &count[..], &count, &numbers.concat(), &[0, 0]].concat();
    [archive, directory, end].concat()
}
