use super::*;
use crate::image::nchw;

fn gray(width: u32, height: u32, data: &[u8]) -> Pixels {
    Pixels::from_bytes(width, height, Color::Gray, data).unwrap()
}

fn rgb(width: u32, height: u32, data: &[u8]) -> Pixels {
    Pixels::from_bytes(width, height, Color::Rgb, data).unwrap()
}

fn refused<T: fmt::Debug>(made: Result<T, ImageError>) -> String {
    match made.unwrap_err() {
        ImageError::InvalidArgument(why) | ImageError::TooLarge(why) => why,
        other => panic!("{other:?}"),
    }
}

#[test]
#[cfg(feature = "testing-images")]
fn of_16_bits_the_upper_8_are_taken() {
    let values = vec![129_u16, 511, 0x7f80, 0xffff];
    let picture = ::image::ImageBuffer::<::image::Luma<u16>, _>::from_raw(4, 1, values).unwrap();
    let mut file = std::io::Cursor::new(vec![]);
    picture.write_to(&mut file, ::image::ImageFormat::Png).unwrap();
    let options = DecodeOptions { color: Color::Gray, upright: true };
    let decoded = decode::decode(file.get_ref(), options).unwrap();
    assert_eq!(decoded.data(), [0, 1, 127, 255]);
}

#[test]
fn a_border_has_its_widths_and_its_colour() {
    let border = Border { left: 1, top: 1, right: 2, bottom: 0 };
    let padded = gray(2, 1, &[1, 2]).pad(border, &[9]).unwrap();
    assert_eq!((padded.width(), padded.height()), (5, 2));
    assert_eq!(padded.data(), [9, 9, 9, 9, 9, 9, 1, 2, 9, 9]);
    let border = Border { left: 0, top: 0, right: 0, bottom: 1 };
    let padded = rgb(1, 1, &[1, 2, 3]).pad(border, &[]).unwrap();
    assert_eq!(padded.data(), [1, 2, 3, 0, 0, 0]);
    assert!(refused(padded.pad(border, &[1])).starts_with("fill has 1 values"));
    let huge = Border { left: u32::MAX, ..border };
    assert!(refused(padded.pad(huge, &[])).contains("65535 pixels for a side"));
}

#[test]
fn a_picture_that_fits_is_letterboxed_without_resizing() {
    let boxed = gray(4, 2, &[1; 8]).letterbox(4, 5, Filter::Bilinear, &[7]).unwrap();
    assert_eq!(boxed.pixels.data(), [[7; 4], [1; 4], [1; 4], [7; 4], [7; 4]].concat());
    let placement = Placement { scale_x: 1.0, scale_y: 1.0, left: 0, top: 1, width: 4, height: 2 };
    assert_eq!(boxed.placement, placement);
    assert!(refused(boxed.pixels.letterbox(0, 5, Filter::Nearest, &[])).contains("0x5"));
}

#[test]
fn the_shorter_side_decides() {
    assert_eq!(frame::with_shorter_side((300, 200), 100), (150, 100));
    assert_eq!(frame::with_shorter_side((200, 301), 100), (100, 150));
    assert_eq!(frame::with_shorter_side((640, 480), 224), (298, 224));
}

/// Python's `int(round(margin / 2.0))`, as torchvision has it.
#[test]
fn half_a_pixel_goes_to_the_even_one() {
    let starts: Vec<_> = (0..8).map(|margin| frame::middle((9 + margin, 9), (9, 9)).0).collect();
    assert_eq!(starts, [0, 0, 1, 2, 2, 2, 3, 4]);
}

#[test]
fn channels_are_ordered_and_scaled() {
    let picture = rgb(2, 1, &[0, 51, 255, 1, 2, 3]);
    let tensor = picture.to_tensor(&nchw(Color::Bgr)).unwrap();
    assert_eq!(tensor.shape(), [1, 3, 1, 2]);
    let values: Vec<_> =
        tensor.view::<f32>().unwrap().as_slice().iter().map(|v| v * 255.).collect();
    assert_eq!(values.iter().map(|v| v.round()).collect::<Vec<_>>(), [255., 3., 51., 2., 0., 1.]);
    let options =
        TensorOptions { dtype: Dtype::Uint8, layout: Layout::Nhwc, scale: 1.0, ..nchw(Color::Rgb) };
    let tensor = picture.to_tensor(&options).unwrap();
    assert_eq!((tensor.shape(), tensor.data()), (vec![1, 1, 2, 3], picture.data()));
    let luma = picture.to_tensor(&TensorOptions { color: Color::Gray, ..options.clone() }).unwrap();
    assert_eq!((luma.shape(), luma.data()), (vec![1, 1, 2, 1], vec![59, 2]));
    let refusal = gray(1, 1, &[1]).to_tensor(&options);
    assert!(refused(refusal).contains("decode it as rgb"));
    let scaled = TensorOptions { scale: 0.5, ..options };
    assert!(refused(picture.to_tensor(&scaled)).contains("scale 1"));
    let means = TensorOptions { mean: vec![0.0], ..nchw(Color::Rgb) };
    assert_eq!(refused(picture.to_tensor(&means)), "mean has 1 values for 3 channels");
}

#[test]
fn statistics_are_of_each_channel() {
    let of = |min, max, mean| ChannelStatistics { min, max, mean };
    assert_eq!(gray(3, 1, &[7, 255, 2]).statistics(), [of(2, 255, 88.0)]);
    let found = rgb(2, 1, &[0, 51, 255, 1, 2, 3]).statistics();
    assert_eq!(found, [of(0, 1, 0.5), of(2, 51, 26.5), of(3, 255, 129.0)]);
}

#[test]
fn raw_pixels_must_fit_their_size() {
    let given = Pixels::from_bytes(2, 2, Color::Rgb, &[0; 11]);
    assert_eq!(refused(given), "11 bytes are given, but 2x2 pixels need 12");
    assert!(Pixels::from_bytes(0, 2, Color::Rgb, &[]).is_err());
    assert!(refused(gray(2, 1, &[1, 2]).crop(1, 0, 2, 1)).contains("is not within 2x1"));
    assert!(refused(gray(2, 1, &[1, 2]).resize(0, 1, Filter::Nearest)).contains("0x1"));
}

/// The rows of a black picture with white shapes on it.
fn drawn(width: u32, height: u32, shapes: &[Shape]) -> Vec<String> {
    let black = vec![0; width as usize * height as usize];
    let drawn = gray(width, height, &black).draw(shapes).unwrap();
    let mark = |value: &u8| if *value == 0 { '.' } else { '#' };
    let row = |row: &[u8]| -> String { row.iter().map(mark).collect() };
    drawn.data().chunks(width as usize).map(row).collect()
}

/// As in host/imaging/tests/it/draw.rs.
#[test]
fn shapes_are_drawn_as_by_the_host() {
    let color = (255, 255, 255);
    let polygon = |points: &[(i32, i32)], thickness| {
        Shape::Polygon(Polygon { points: points.into(), thickness, color })
    };
    let rectangle =
        Shape::Rectangle(Rectangle { x: -2, y: -1, width: 7, height: 6, thickness: 2, color });
    assert_eq!(
        drawn(8, 6, &[rectangle]),
        ["#####...", "...##...", "...##...", "#####...", "#####...", "........"]
    );
    assert_eq!(
        drawn(8, 6, &[polygon(&[(1, 1), (6, 1), (1, 4)], 1)]),
        ["........", ".######.", ".#..##..", ".###....", ".#......", "........"]
    );
    assert_eq!(
        drawn(9, 6, &[polygon(&[(1, 1), (7, 3)], 2)]),
        [".........", ".##......", ".#####...", "...######", "......###", "........."]
    );
    let text = "A".into();
    let label = Shape::Label(Label { x: -1, y: 0, text, size: 1, color });
    assert_eq!(drawn(4, 3, &[label]), ["####", "#...", "#..."]);
    let refusal = gray(1, 1, &[0]).draw(&[polygon(&[], 65)]);
    assert_eq!(refused(refusal), "shapes[0]: thickness is 65; it must be 1 to 64");
    let blue = Rectangle { x: 0, y: 0, width: 1, height: 1, thickness: 1, color: (0, 0, 255) };
    let coloured = rgb(2, 1, &[1, 2, 3, 4, 5, 6]).draw(&[Shape::Rectangle(blue)]).unwrap();
    assert_eq!(coloured.data(), [0, 0, 255, 4, 5, 6]);
}

#[test]
fn many_parts_are_cropped_at_once() {
    let picture = gray(3, 2, &[1, 2, 3, 4, 5, 6]);
    let part = |x, width| CropBox { x, y: 0, width, height: 2 };
    let parts = picture.crop_many(&[part(0, 1), part(1, 2)], None, Filter::Bilinear).unwrap();
    let data: Vec<_> = parts.iter().map(Pixels::data).collect();
    assert_eq!(data, [vec![1, 4], vec![2, 3, 5, 6]]);
    let refusal = picture.crop_many(&[part(0, 1), part(2, 2)], None, Filter::Bilinear);
    assert_eq!(refused(refusal), "boxes[1]: crop of 2x2 at (2, 0) is not within 3x2");
    let refusal = picture.crop_many(&[part(0, 1); 1025], None, Filter::Bilinear);
    assert_eq!(refused(refusal), "1025 boxes are given; the limit is 1024");
    assert!(refused(picture.encode(Encoding::Jpeg(0))).contains("1 to 100, not 0"));
}

#[cfg(not(feature = "testing-images"))]
#[test]
fn resizing_says_which_feature_it_needs() {
    let why = refused(gray(2, 1, &[1, 2]).resize(1, 1, Filter::Bilinear));
    assert!(why.contains("testing-images"), "{why}");
}

#[cfg(feature = "testing-images")]
mod with_images {
    use super::*;
    use crate::image::{GRAY, RGB};
    use crate::testing;

    const SEVEN: &[u8] = include_bytes!("../../../../../models/digits/samples/seven.png");
    const THREE: &[u8] = include_bytes!("../../../../../models/digits/samples/three.jpg");

    fn decoded(file: &[u8], options: DecodeOptions) -> Result<Pixels, ImageError> {
        Pixels::decode(&testing::blob(file), options)
    }

    /// A PNG of one pixel.
    fn png(pixel: [u8; 4]) -> Vec<u8> {
        let mut file = std::io::Cursor::new(Vec::new());
        let picture = ::image::RgbaImage::from_raw(1, 1, pixel.to_vec()).unwrap();
        picture.write_to(&mut file, ::image::ImageFormat::Png).unwrap();
        file.into_inner()
    }

    #[test]
    fn files_are_decoded_in_colour_and_as_luma() {
        for file in [SEVEN, THREE] {
            let (colour, luma) = (decoded(file, RGB).unwrap(), decoded(file, GRAY).unwrap());
            assert_eq!(colour.data().len(), 3 * luma.data().len());
            assert_eq!((colour.color(), luma.color()), (Color::Rgb, Color::Gray));
        }
        assert_eq!(decoded(&png([10, 20, 30, 255]), RGB).unwrap().data(), [10, 20, 30]);
        // Transparency is left out.
        assert_eq!(decoded(&png([255, 255, 255, 51]), GRAY).unwrap().data(), [255]);
    }

    #[test]
    fn files_that_are_no_pictures_and_cut_ones_are_refused() {
        assert_eq!(decoded(b"text", RGB).unwrap_err(), ImageError::UnknownFormat);
        for file in [SEVEN, THREE] {
            let cut = decoded(&file[..file.len() / 2], RGB);
            assert!(matches!(cut, Err(ImageError::Malformed(_))), "{cut:?}");
        }
    }

    #[test]
    fn files_that_are_made_are_decoded_again() {
        let picture = rgb(2, 1, &[0, 51, 255, 1, 2, 3]);
        for format in [Encoding::Png, Encoding::WebpLossless] {
            let file = picture.encode(format).unwrap();
            assert_eq!(Pixels::decode(&file, RGB).unwrap().data(), picture.data());
        }
        let luma = gray(8, 8, &[90; 64]);
        let again = Pixels::decode(&luma.encode(Encoding::Jpeg(90)).unwrap(), GRAY).unwrap();
        assert!(again.data().iter().all(|value| value.abs_diff(90) < 3), "{:?}", again.data());
    }

    #[test]
    fn a_picture_is_resized() {
        let pixels = gray(4, 2, &[0, 0, 100, 100, 0, 0, 100, 100]);
        let half = pixels.resize(2, 1, Filter::Bilinear).unwrap();
        assert_eq!((half.width(), half.height()), (2, 1));
        let data = half.data();
        assert!(data[0] < 20 && data[1] > 80, "{data:?}");
        assert_eq!(pixels.resize(2, 1, Filter::Nearest).unwrap().data(), [0, 100]);
        assert_eq!(
            rgb(1, 1, &[1, 2, 3]).resize(2, 2, Filter::Lanczos3).unwrap().data()[9..],
            [1, 2, 3]
        );
    }
}
