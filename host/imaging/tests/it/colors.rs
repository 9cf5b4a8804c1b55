//! The colours of JPEGs: which marker decides, as in libjpeg, and which colours can be decoded.

use crate::photo::{Photo, segment};
use crate::{decode, options, pool};

/// Adobe's marker with this transform.
fn adobe(transform: u8) -> Vec<u8> {
    segment(0xee, &[&b"Adobe\0\x64\0\0\0\0"[..], &[transform]].concat())
}

fn jfif() -> Vec<u8> {
    segment(0xe0, b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0")
}

fn photo(names: &'static [u8]) -> Photo {
    Photo { names, ..Photo::new(100, 75) }
}

fn gray(photo: &Photo) -> Vec<u8> {
    decode(&pool(), &photo.whole(), options(true)).unwrap().data().to_vec()
}

fn rgb(photo: &Photo) -> Vec<u8> {
    decode(&pool(), &photo.whole(), options(false)).unwrap().data().to_vec()
}

/// The pixels with each of these headers, for each way of coding.
fn assert_same(names: &'static [u8], headers: &[Vec<u8>], as_names: &'static [u8], like: &[u8]) {
    for (is_progressive, is_subsampled) in [(false, false), (false, true), (true, true)] {
        let of = |names, before: &[u8], after: &[u8]| Photo {
            is_progressive,
            is_subsampled,
            before: before.to_vec(),
            after: after.to_vec(),
            ..photo(names)
        };
        let expected = of(as_names, like, &[]);
        let (expected, expected_gray) = (rgb(&expected), gray(&expected));
        for header in headers {
            for photo in [of(names, header, &[]), of(names, &[], header)] {
                assert!(rgb(&photo) == expected, "{names:?} {header:?} {is_progressive}");
                assert!(gray(&photo) == expected_gray, "{names:?} {header:?} {is_progressive}");
            }
        }
    }
}

#[test]
fn three_components_are_what_jfif_adobe_and_names_say_in_this_order() {
    let ycbcr = [
        [jfif(), adobe(0)].concat(),
        [adobe(0), jfif()].concat(),
        [jfif(), adobe(2)].concat(),
        [jfif(), adobe(255)].concat(),
        jfif(),
        adobe(1),
        adobe(2),
        adobe(3),
        adobe(255),
        // Of several markers the last one counts; one that is too short is none.
        [adobe(0), adobe(1)].concat(),
        segment(0xee, b"Adobe\0\x64\0\0\0\0"),
        segment(0xe0, b"JFIF\0"),
        vec![],
    ];
    assert_same(&[1, 2, 3], &ycbcr, &[1, 2, 3], &[]);
    assert_same(b"RGB", &ycbcr[..10], &[1, 2, 3], &[]);
    assert_same(&[7, 8, 9], &ycbcr, &[1, 2, 3], &[]);
    let rgb = [vec![], adobe(0), segment(0xe0, b"JFIF\0"), segment(0xee, b"Adobe")];
    assert_same(b"RGB", &rgb, &[1, 2, 3], &adobe(0));
}

#[test]
fn components_that_are_red_green_and_blue_are_not_converted() {
    let photo = photo(&[1, 2, 3]);
    let luma = gray(&photo);
    let colors = rgb(&Photo { before: adobe(0), ..photo });
    let red: Vec<_> = colors.iter().step_by(3).copied().collect();
    assert_eq!(red, luma);
}

#[test]
fn gray_images_stay_gray_whatever_a_marker_says() {
    let headers = [adobe(0), adobe(1), adobe(2), adobe(9), [jfif(), adobe(0)].concat(), jfif()];
    assert_same(&[1], &headers, &[1], &[]);
    let colors = rgb(&photo(&[1]));
    assert!(
        colors.as_chunks::<3>().0.iter().all(|[red, green, blue]| red == green && green == blue)
    );
}

#[test]
fn four_components_are_cmyk_or_ycck() {
    let names = &[1, 2, 3, 4];
    let cmyk = [adobe(0), jfif(), [jfif(), adobe(0)].concat()];
    assert_same(names, &cmyk, names, &[]);
    assert_same(names, &[adobe(1), adobe(3), adobe(255)], names, &adobe(2));
    let of = |before| rgb(&Photo { before, ..photo(names) });
    assert!(of(adobe(0)) != of(adobe(2)));
}

/// ITU-R BT.601, as for every other format.
#[test]
fn gray_is_made_of_all_colours() {
    for (names, before) in
        [(&b"RGB"[..], vec![]), (&[1, 2, 3, 4], adobe(0)), (&[1, 2, 3, 4], adobe(2))]
    {
        let photo = Photo { before, ..photo(names) };
        let luma = |pixel: &[u8; 3]| {
            let [red, green, blue] = pixel.map(u32::from);
            ((red * 299 + green * 587 + blue * 114 + 500) / 1000) as u8
        };
        let expected: Vec<_> = rgb(&photo).as_chunks().0.iter().map(luma).collect();
        assert_eq!(gray(&photo), expected);
    }
}

#[test]
fn two_components_are_refused() {
    let whole = photo(&[1, 2]).whole();
    for lenient in [false, true] {
        let how = gristmill_imaging::DecodeOptions { lenient, ..options(false) };
        let error = decode(&pool(), &whole, how).unwrap_err();
        assert_eq!(error.to_string(), "malformed image: no colours have two components");
    }
}
