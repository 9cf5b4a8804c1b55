//! The files of code that are loaded in this process: their addresses, how their functions are
//! unwound, and the names of these.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::ops::Range;
use std::path::Path;

use gristmill_core::Function;
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, ReadCache, SymbolKind};

/// A loaded file of code.
pub(crate) struct LoadedObject {
    path: String,
    /// The file's name, without its folder.
    pub(crate) name: String,
    /// Its addresses in this process.
    pub(crate) addresses: Range<u64>,
    /// Its address in this process less the one that the file states.
    pub(crate) bias: u64,
    pub(crate) unwinding: Unwinding,
}

/// The sections that say how functions are unwound, with the addresses that the file states.
#[derive(Default)]
pub(crate) struct Unwinding {
    pub(crate) text: Option<Range<u64>>,
    pub(crate) eh_frame: Option<(Range<u64>, Vec<u8>)>,
    pub(crate) eh_frame_hdr: Option<(Range<u64>, Vec<u8>)>,
    pub(crate) got: Option<Range<u64>>,
}

impl LoadedObject {
    /// Show its functions one by one; none if the file cannot be read.
    pub(crate) fn functions(&self, show: &mut dyn FnMut(Function)) {
        let Ok(file) = File::open(&self.path) else { return };
        let cache = ReadCache::new(file);
        let Ok(file) = Parsed::parse(&cache) else { return };
        self.show(&file, show);
        if file.symbols().next().is_some() {
            return;
        }
        let Some(symbols) = symbols_beside(&file, Path::new(&self.path)) else { return };
        let Ok(symbols) = Parsed::parse(&symbols) else { return };
        if is_same_build(&file, &symbols) {
            self.show(&symbols, show);
        }
    }

    fn show(&self, file: &Parsed<'_>, show: &mut dyn FnMut(Function)) {
        // A stripped file still names what it exports.
        let symbols = file.symbols().chain(file.dynamic_symbols());
        let defined =
            symbols.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
        for symbol in defined {
            let Ok(name) = symbol.name() else { continue };
            let from = symbol.address().wrapping_add(self.bias);
            let addresses = from..from.saturating_add(symbol.size());
            show(Function { addresses, name: name.to_owned() });
        }
    }
}

/// A file of which only the parts that are needed are read: it can be large.
type Parsed<'a> = object::File<'a, &'a ReadCache<File>>;

/// The file with the names that a stripped file lost: it names it, and it lies in the same folder.
fn symbols_beside(file: &Parsed<'_>, path: &Path) -> Option<ReadCache<File>> {
    let (name, _) = file.gnu_debuglink().ok()??;
    let name = Path::new(std::str::from_utf8(name).ok()?).file_name()?;
    Some(ReadCache::new(File::open(path.with_file_name(name)).ok()?))
}

/// Whether the linker made both. The names of another build stand for other addresses.
fn is_same_build(one: &Parsed<'_>, other: &Parsed<'_>) -> bool {
    matches!((one.build_id(), other.build_id()), (Ok(Some(one)), Ok(Some(other))) if one == other)
}

/// The bytes of a page; where pages are larger, of a part of one.
pub(crate) const PAGE_BYTES: usize = 4096;

/// The file of this program, also if it was removed or replaced.
const PROGRAM: &str = "/proc/self/exe";

/// All loaded files. A file that cannot be read is left out.
pub(crate) fn loaded() -> Vec<LoadedObject> {
    let maps = fs::read_to_string("/proc/self/maps").unwrap_or_default();
    let program = fs::read_link(PROGRAM).ok();
    let program = program.and_then(|path| path.to_str().map(str::to_owned));
    let program = program.map(|path| path.trim_end_matches(" (deleted)").to_owned());
    let mut files: BTreeMap<&str, Vec<(Range<u64>, u64)>> = BTreeMap::new();
    for line in maps.lines() {
        let mut words = line.split_whitespace();
        let (Some(range), Some(rights), Some(offset)) = (words.next(), words.next(), words.next())
        else {
            continue;
        };
        let path = words.nth(2).unwrap_or_default();
        // Another file may have the path now. That of this program can still be read.
        let path = match words.next() {
            Some("(deleted)") if program.as_deref() == Some(path) => PROGRAM,
            Some("(deleted)") => continue,
            _ => path,
        };
        let number = |text: &str| u64::from_str_radix(text, 16).ok();
        let range = range.split_once('-').and_then(|(from, to)| Some(number(from)?..number(to)?));
        if rights.contains('x')
            && path.starts_with('/')
            && let (Some(range), Some(offset)) = (range, number(offset))
        {
            files.entry(path).or_default().push((range, offset));
        }
    }
    files.into_iter().filter_map(|(path, mapped)| object_of(path, &mapped)).collect()
}

/// The file at `path`, of which these ranges of addresses with code are mapped, each from an
/// offset on.
fn object_of(path: &str, mapped: &[(Range<u64>, u64)]) -> Option<LoadedObject> {
    let cache = ReadCache::new(File::open(path).ok()?);
    let file = Parsed::parse(&cache).ok()?;
    let (range, offset) = mapped.first()?;
    // A mapping begins with the page in which its segment begins, so the segment before can hold
    // the same offset: the last one is meant.
    let page = |number: u64| number & !(PAGE_BYTES as u64 - 1);
    let holds = |segment: &object::Segment<'_, '_, &ReadCache<File>>| {
        let (start, length) = segment.file_range();
        (page(start)..start + length).contains(offset)
    };
    let segment = file.segments().filter(holds).last()?;
    let stated = page(segment.address()) + (offset - page(segment.file_range().0));
    let bias = range.start.wrapping_sub(stated);
    let span = |name: &str| {
        let section = file.section_by_name(name)?;
        Some(section.address()..section.address() + section.size())
    };
    let data = |name: &str| {
        let data = file.section_by_name(name)?.uncompressed_data().ok()?;
        Some((span(name)?, data.into_owned()))
    };
    let end = mapped.iter().map(|(range, _)| range.end).max()?;
    Some(LoadedObject {
        path: path.to_owned(),
        name: path.rsplit('/').next().unwrap_or(path).to_owned(),
        addresses: range.start..end,
        bias,
        unwinding: Unwinding {
            text: span(".text"),
            eh_frame: data(".eh_frame"),
            eh_frame_hdr: data(".eh_frame_hdr"),
            got: span(".got"),
        },
    })
}

#[cfg(test)]
mod tests {
    use std::env;
    use std::process::{self, Command};

    use super::*;

    fn run(program: &str, args: &[&Path]) {
        let ended = Command::new(program).args(args).status().unwrap();
        assert!(ended.success(), "{program} {args:?}");
    }

    fn functions_of(path: &Path) -> Vec<String> {
        let object = LoadedObject {
            path: path.to_str().unwrap().into(),
            name: String::new(),
            addresses: 0..u64::MAX,
            bias: 0,
            unwinding: Unwinding::default(),
        };
        let mut names = Vec::new();
        object.functions(&mut |function| names.push(function.name));
        names
    }

    #[test]
    fn a_stripped_file_has_the_names_of_the_file_beside_it_of_the_same_build() {
        let folder = env::temp_dir().join(format!("gristmill-symbols-{}", process::id()));
        fs::create_dir_all(&folder).unwrap();
        let (program, symbols) = (folder.join("program"), folder.join("program.debug"));
        let test_program = env::current_exe().unwrap();
        run("objcopy", &["--only-keep-debug".as_ref(), &test_program, &symbols]);
        run("strip", &["--strip-all".as_ref(), "-o".as_ref(), &program, &test_program]);
        let link = format!("--add-gnu-debuglink={}", symbols.display());
        run("objcopy", &[link.as_ref(), &program]);
        let named = |names: &[String]| names.iter().any(|name| name.contains("functions_of"));
        assert!(named(&functions_of(&program)));

        // The names of another build.
        run("objcopy", &["--remove-section=.note.gnu.build-id".as_ref(), &symbols]);
        assert!(!named(&functions_of(&program)));
        fs::remove_file(&symbols).unwrap();
        assert!(!named(&functions_of(&program)));
        fs::remove_dir_all(folder).unwrap();
    }
}
