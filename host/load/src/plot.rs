//! An image of latency over load, as SVG.

use std::fmt::Write;

use crate::measured::Measured;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 420.0;
const LEFT: f64 = 70.0;
const RIGHT: f64 = 20.0;
const TOP: f64 = 40.0;
const BOTTOM: f64 = 50.0;

/// A line of the image: its name, its colour, and its value in microseconds.
type Line = (&'static str, &'static str, fn(&Measured) -> u64);

const LINES: [Line; 3] = [
    ("p50", "#1f77b4", |measured| measured.latency_us.p50),
    ("p95", "#ff7f0e", |measured| measured.latency_us.p95),
    ("p99", "#d62728", |measured| measured.latency_us.p99),
];

/// Latency (on a logarithmic scale) over answers a second, of several measurements.
pub fn plot(title: &str, all: &[Measured]) -> String {
    let mut points: Vec<&Measured> = all.iter().filter(|measured| measured.answered > 0).collect();
    points.sort_by(|one, other| one.per_second.total_cmp(&other.per_second));
    let most = points.iter().map(|measured| measured.per_second).fold(1.0, f64::max) * 1.05;
    let times = || {
        points.iter().flat_map(|measured| LINES.iter().map(|(.., value)| value(measured).max(1)))
    };
    let least_time = decade(times().min().unwrap_or(1) as f64, f64::floor);
    let most_time = decade(times().max().unwrap_or(10) as f64 * 1.01, f64::ceil);
    let x = |per_second: f64| LEFT + per_second / most * (WIDTH - LEFT - RIGHT);
    let span = (most_time.log10() - least_time.log10()).max(1.0);
    let y = |us: f64| {
        HEIGHT - BOTTOM - (us.log10() - least_time.log10()) / span * (HEIGHT - TOP - BOTTOM)
    };
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{HEIGHT}\" fill=\"white\"/>\n\
         <text x=\"{LEFT}\" y=\"22\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    let mut us = least_time;
    while us <= most_time * 1.001 {
        let at = y(us);
        let _ = writeln!(
            svg,
            "<line x1=\"{LEFT}\" x2=\"{:.1}\" y1=\"{at:.1}\" y2=\"{at:.1}\" stroke=\"#ddd\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
            WIDTH - RIGHT,
            LEFT - 6.0,
            at + 4.0,
            time(us)
        );
        us *= 10.0;
    }
    for part in 0..=4 {
        let per_second = most / 1.05 * f64::from(part) / 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{per_second:.0}</text>",
            x(per_second),
            HEIGHT - BOTTOM + 18.0
        );
    }
    let _ = writeln!(
        svg,
        "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">answers a second</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        HEIGHT - 10.0
    );
    for (at, (name, colour, value)) in LINES.iter().enumerate() {
        let point = |measured: &&Measured| {
            format!("{:.1},{:.1}", x(measured.per_second), y(value(measured).max(1) as f64))
        };
        let coordinates: Vec<String> = points.iter().map(point).collect();
        let _ = writeln!(
            svg,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>",
            coordinates.join(" ")
        );
        for measured in &points {
            let _ = writeln!(
                svg,
                "<circle cx=\"{:.1}\" cy=\"{:.1}\" r=\"3\" fill=\"{colour}\"/>",
                x(measured.per_second),
                y(value(measured).max(1) as f64)
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"22\" fill=\"{colour}\" text-anchor=\"end\">{name}</text>",
            WIDTH - RIGHT - 40.0 * (LINES.len() - 1 - at) as f64
        );
    }
    svg.push_str("</svg>\n");
    svg
}

fn decade(us: f64, round: fn(f64) -> f64) -> f64 {
    10_f64.powf(round(us.log10()))
}

fn time(us: f64) -> String {
    match us {
        us if us >= 1e6 => format!("{:.0} s", us / 1e6),
        us if us >= 1e3 => format!("{:.0} ms", us / 1e3),
        us => format!("{us:.0} us"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
