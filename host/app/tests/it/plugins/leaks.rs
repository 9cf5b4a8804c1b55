//! Bytes of one tenant never show up in another tenant's answers, even if its images and bodies
//! are damaged.

use std::io::Cursor;

use gristmill_core::POISON;
use image::{ImageFormat, RgbaImage};

use self::dice::Dice;
use crate::support::raw::{self, Raw};
use crate::support::server::Server;

#[path = "../../../../imaging/tests/it/dice.rs"]
mod dice;
#[path = "../../../../imaging/tests/it/sketch.rs"]
mod sketch;

/// The bytes that the other tenant sends again and again.
const SECRET: &[u8; 8] = b"\xf3secret\x9b";

/// Images of this size take a buffer of the same class as the secrets before them.
const WIDTH: u32 = 200;
const HEIGHT: u32 = 150;

/// Damaged images, and bodies that are cut short, of each format.
const DAMAGED: usize = 300;
const CUT: usize = 40;

fn pictures() -> Vec<Vec<u8>> {
    let (width, height) = (WIDTH as u16, HEIGHT as u16);
    let picture = RgbaImage::from_fn(WIDTH, HEIGHT, |x, y| {
        image::Rgba([(x * y) as u8, x as u8, y as u8, 255 - x as u8 / 3])
    });
    let opaque = image::DynamicImage::from(picture.clone()).into_rgb8();
    let mut pictures = vec![sketch::Sketch::plain(width, height).whole()];
    for format in [ImageFormat::Png, ImageFormat::WebP, ImageFormat::Gif] {
        let mut bytes = Cursor::new(Vec::new());
        picture.write_to(&mut bytes, format).unwrap();
        pictures.push(bytes.into_inner());
    }
    let mut bytes = Cursor::new(Vec::new());
    opaque.write_to(&mut bytes, ImageFormat::Bmp).unwrap();
    pictures.push(bytes.into_inner());
    pictures
}

/// Up to three faults, half of them near the beginning, where sizes and tables are.
fn damaged(whole: &[u8], dice: &mut Dice) -> Vec<u8> {
    let mut bytes = whole.to_vec();
    for _ in 0..=dice.below(3) {
        let range = if dice.below(2) == 0 { 64 } else { bytes.len() };
        let at = dice.below(range.min(bytes.len()));
        match dice.below(6) {
            0 => bytes.truncate(at.max(64)),
            1 => bytes[at] ^= 1 << dice.below(8),
            2 => bytes[at] = dice.below(256) as u8,
            3 => drop(bytes.splice(at..at, [0xff, 0xfe, 0, 2, 0xff, 0xd9])),
            4 => drop(bytes.drain(at..(at + 1 + dice.below(200)).min(bytes.len()))),
            _ => {
                let end = (at + 1 + dice.below(200)).min(bytes.len());
                bytes[at..end].fill(0);
            }
        }
        if bytes.len() < 64 {
            break;
        }
    }
    bytes
}

#[track_caller]
fn assert_clean(answer: &[u8], what: &str) {
    for leftover in [&SECRET[..], &POISON] {
        let position = answer.windows(leftover.len()).position(|bytes| bytes == leftover);
        assert_eq!(position, None, "{what}: another's bytes");
    }
}

#[test]
fn no_picture_and_no_body_shows_what_another_tenant_sent() {
    let server = Server::start();
    server.digits("good");
    server.hostile("evil");
    let path = "/v1/evil/infer/hostile?do=pixels";
    let lenient = "/v1/evil/infer/hostile?do=pixels-lenient";
    let secrets = [100_000, 70_000, 100_000, 260_000, 100_000, 1_000_000];
    let mut secrets = secrets.iter().cycle().map(|len: &usize| SECRET.repeat(len / SECRET.len()));
    let mut leave_secret = || {
        let answer = server.data.post("/v1/good/infer/digits", &secrets.next().unwrap());
        assert_eq!(answer.status / 100, 4, "no picture: {}", answer.text());
    };
    let mut dice = Dice(11);
    for (kind, whole) in pictures().iter().enumerate() {
        let answer = server.data.post(path, whole);
        assert_eq!(answer.status, 200, "kind {kind}: {}", answer.text());
        assert_eq!(answer.body.len(), (WIDTH * HEIGHT * 3) as usize);
        for round in 0..DAMAGED {
            let bytes = damaged(whole, &mut dice);
            leave_secret();
            let path = if round % 3 == 0 { lenient } else { path };
            let answer = server.data.post(path, &bytes);
            assert_clean(&answer.body, &format!("kind {kind}, round {round}"));
        }
        for round in 0..CUT {
            let head = raw::post(path, &["content-length: 100000"]);
            leave_secret();
            let mut cut = Raw::sent(&server.data, &head);
            cut.try_send(&whole[..dice.below(whole.len())]);
            if round % 2 == 0 {
                cut.end_sending();
                assert_clean(cut.read_to_end().as_bytes(), "a body that was cut short");
            }
        }
    }
    assert_eq!(server.data.post("/v1/evil/infer/hostile", b"").text(), "harmless");
}
