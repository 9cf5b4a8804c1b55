use std::io::Cursor;

use super::header::checksum;
use super::*;

/// An entry of this kind.
fn entry(kind: u8, name: &str, content: &[u8]) -> Vec<u8> {
    let mut entry = header_of(name, content.len() as u64);
    let at = entry.len() - BLOCK as usize;
    entry[at + 156] = kind;
    seal(&mut entry[at..]);
    entry.extend_from_slice(content);
    entry.extend(padding_of(content.len() as u64));
    entry
}

/// Put the right checksum into a header.
fn seal(header: &mut [u8]) {
    let sum = checksum((&*header).try_into().unwrap());
    header[148..154].copy_from_slice(format!("{sum:06o}").as_bytes());
}

fn file(name: &str, content: &[u8]) -> Vec<u8> {
    entry(b'0', name, content)
}

fn read(archive: &[u8]) -> Result<Package, PackageError> {
    Package::read(&mut Cursor::new(archive))
}

#[test]
fn files_are_found_where_they_lie() {
    let long = format!("{}/weights.bin", "w".repeat(120));
    let archive = [
        entry(b'5', "./", b""),
        file("./model.onnx", b"model"),
        file(&long, b"weights"),
        file("empty", b""),
        END.to_vec(),
    ]
    .concat();
    assert!(Package::is_one(&archive));
    let package = read(&archive).unwrap();
    let parts: Vec<_> = package.parts.iter().map(|part| (&*part.name, part.bytes)).collect();
    assert_eq!(parts, [("model.onnx", 5), (&*long, 7), ("empty", 0)]);
    let content = |part: &PackageFile| &archive[part.offset as usize..][..part.bytes as usize];
    assert_eq!(content(&package.parts[1]), b"weights");
    assert_eq!(package.model().unwrap(), &package.parts[0]);
    // Without its last blocks, and with other blocks behind it, it is the same.
    let end = archive.len() - END.len();
    assert_eq!(read(&archive[..end]).unwrap(), package);
    assert_eq!(read(&[&archive[..], &[7; 512]].concat()).unwrap(), package);
}

#[test]
fn sizes_beyond_octal_digits_are_written_and_read() {
    let header = header_of("model.onnx", 1 << 33);
    assert_eq!(header.len(), 3 * BLOCK as usize);
    // The content is not there.
    assert!(matches!(read(&header), Err(PackageError::Damaged(1024))));
    let mut binary = header_of("m.onnx", 5);
    binary[124..136].copy_from_slice(&[0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5]);
    seal(&mut binary);
    binary.extend_from_slice(&[1; 512]);
    assert_eq!(read(&binary).unwrap().parts[0].bytes, 5);
}

#[test]
fn a_name_of_gnu_tar_is_read() {
    let archive = [entry(b'L', "././@LongLink", b"long/model.onnx\0"), file("long/mod", b"m")];
    assert_eq!(read(&archive.concat()).unwrap().parts[0].name, "long/model.onnx");
}

#[test]
fn what_does_not_belong_into_a_package_is_refused() {
    let model = || file("model.onnx", b"m");
    let cases = [
        (file("/etc/passwd", b"x"), "\"/etc/passwd\": paths must be relative"),
        (file("a/../../b", b"x"), "\"a/../../b\""),
        (file("", b"x"), "the path \"\""),
        (entry(b'5', "../up", b""), "\"../up\""),
        (entry(b'1', "hard", b""), "\"hard\" in the archive is a link"),
        (entry(b'2', "soft", b""), "\"soft\" in the archive is a link"),
        (entry(b'3', "tty", b""), "\"tty\" in the archive is a link or a special file"),
        (entry(b'S', "sparse", b""), "\"sparse\""),
        (entry(b'x', "pax", b"22 GNU.sparse.major=1\n"), "a sparse file"),
        (entry(b'x', "pax", b"9 path=x"), "damaged"),
        (entry(b'x', "pax", b"99 path=x\n"), "damaged"),
        (entry(b'x', "pax", &[b' '; 70_000]), "damaged"),
        (model(), "\"model.onnx\" is in the archive twice"),
        (file("other.onnx", b"x"), "several models (model.onnx, other.onnx)"),
        (file("x", b"x")[..512].to_vec(), "damaged, or cut short, at byte 1024"),
        (vec![1; 512], "damaged"),
        (vec![1; 100], "damaged"),
        (file("f", b"").repeat(5000), "twice"),
    ];
    for (added, named) in cases {
        let archive = [model(), added].concat();
        let error = match read(&archive) {
            Ok(package) => package.model().unwrap_err().to_string(),
            Err(error) => error.to_string(),
        };
        assert!(error.contains(named), "{error}: {named}");
    }
    let many: Vec<_> = (0..5000).flat_map(|at| file(&format!("f{at}"), b"")).collect();
    assert!(matches!(read(&many), Err(PackageError::TooMany(ENTRIES_MAX))));
    // Extended headers are neither files nor folders, and not without end.
    let extended = entry(b'x', "pax", b"11 mtime=1\n");
    let with_times = |at: usize| [&extended[..], &file(&format!("f{at}"), b"")].concat();
    let many: Vec<_> = (0..ENTRIES_MAX).flat_map(with_times).collect();
    assert_eq!(read(&many).unwrap().parts.len(), ENTRIES_MAX);
    let error = read(&extended.repeat(HEADERS_MAX + 1));
    assert!(matches!(error, Err(PackageError::TooMany(_))), "{error:?}");
    assert!(matches!(read(&file("x", b"")).unwrap().model(), Err(PackageError::NoModel)));
}
