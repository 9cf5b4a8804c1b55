use super::*;

#[test]
fn pictures_are_as_small_as_they_are_said_to_be() {
    let sizes = [
        ("png 3,000,000x1", png(3_000_000, 1, PngColor::Gray8).unwrap().len(), 2_000..4_000),
        ("png 20,000,000x1", png(20_000_000, 1, PngColor::Gray8).unwrap().len(), 18_000..22_000),
        ("png deep", png_deep().unwrap().len(), 380_000..400_000),
        ("png large", png_large().unwrap().len(), 140_000..150_000),
        ("png profile", png_profile().unwrap().len(), 240_000..250_000),
        ("webp", webp().len(), 20..37),
        ("webp of codes", webp_codes().len(), 680_000..700_000),
        ("bmp", bmp().len(), 1_000..1_200),
        ("gif", gif().len(), 30_000..36_000),
        ("jpeg of scans", jpeg_scans().len(), 100_000..108_000),
        ("jpeg that ends early", jpeg_early_end().len(), 208..209),
    ];
    for (name, len, range) in sizes {
        assert!(range.contains(&len), "{name}: {len} bytes");
    }
}
