//! A picture of the ratios: a bar for each peer and concurrency, as SVG.

use std::fmt::Write;

const WIDTH: f64 = 720.0;
const LEFT: f64 = 110.0;
/// The place of the numbers beyond the longest bar.
const RIGHT: f64 = 60.0;
const TOP: f64 = 46.0;
const BAR: f64 = 12.0;
const BETWEEN_PEERS: f64 = 10.0;
const BETWEEN_PANELS: f64 = 46.0;
const BOTTOM: f64 = 24.0;

/// From few clients to many, so that the colours are told apart in gray as well.
const COLOURS: [&str; 3] = ["#9ecae1", "#4292c6", "#08519c"];

/// The bars of one service.
pub(super) struct Panel {
    pub(super) title: String,
    pub(super) groups: Vec<Group>,
}

/// The bars of one peer.
pub(super) struct Group {
    pub(super) name: String,
    /// One a concurrency. None was measured if it is missing.
    pub(super) ratios: Vec<Option<f64>>,
}

/// The picture. `legend` has a name for each bar of a group.
pub(super) fn draw(title: &str, legend: &[String], panels: &[Panel]) -> String {
    let group_height = BAR * legend.len() as f64 + BETWEEN_PEERS;
    let height = panels.iter().fold(TOP + BOTTOM, |height, panel| {
        height + BETWEEN_PANELS + group_height * panel.groups.len() as f64
    });
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" \
         font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"{WIDTH}\" height=\"{height:.0}\" fill=\"white\"/>\n\
         <text x=\"20\" y=\"24\" font-size=\"15\">{title}</text>\n"
    );
    for (at, (name, colour)) in legend.iter().zip(COLOURS).enumerate() {
        let x = LEFT + 140.0 * at as f64;
        let _ = writeln!(
            svg,
            "<rect x=\"{x:.1}\" y=\"37\" width=\"10\" height=\"10\" fill=\"{colour}\"/>\
             <text x=\"{:.1}\" y=\"46\">{name}</text>",
            x + 15.0
        );
    }
    let mut y = TOP;
    for panel in panels {
        y += BETWEEN_PANELS;
        let _ = writeln!(
            svg,
            "<text x=\"20\" y=\"{:.1}\" font-weight=\"bold\">{}</text>",
            y - 14.0,
            panel.title
        );
        draw_panel(&mut svg, panel, y, group_height);
        y += group_height * panel.groups.len() as f64;
    }
    svg.push_str("</svg>\n");
    svg
}

/// The bars of a panel, from `top` on. Each panel has a scale of its own.
fn draw_panel(svg: &mut String, panel: &Panel, top: f64, group_height: f64) {
    let ratios = || panel.groups.iter().flat_map(|group| group.ratios.iter().flatten());
    let most = ratios().copied().fold(1.0, f64::max);
    let length = |ratio: f64| ratio / most * (WIDTH - LEFT - RIGHT);
    for (at, group) in panel.groups.iter().enumerate() {
        let y = top + group_height * at as f64;
        let middle = y + (group_height - BETWEEN_PEERS) / 2.0 + 4.0;
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{middle:.1}\" text-anchor=\"end\">{}</text>",
            LEFT - 8.0,
            group.name
        );
        if group.ratios.iter().all(Option::is_none) {
            let _ = writeln!(
                svg,
                "<text x=\"{:.1}\" y=\"{middle:.1}\" fill=\"#777\">not measured</text>",
                LEFT + 6.0
            );
        }
        for (bar, (ratio, colour)) in group.ratios.iter().zip(COLOURS).enumerate() {
            let Some(ratio) = ratio else { continue };
            let y = y + BAR * bar as f64;
            let _ = writeln!(
                svg,
                "<rect x=\"{LEFT}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" \
                 fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{:.1}\" font-size=\"11\">{ratio:.1}</text>",
                length(*ratio),
                BAR - 1.0,
                LEFT + length(*ratio) + 5.0,
                y + 10.0
            );
        }
    }
    let bottom = top + group_height * panel.groups.len() as f64 - BETWEEN_PEERS / 2.0;
    let at = LEFT + length(1.0);
    let _ = writeln!(
        svg,
        "<line x1=\"{at:.1}\" x2=\"{at:.1}\" y1=\"{:.1}\" y2=\"{bottom:.1}\" stroke=\"#d62728\" \
         stroke-dasharray=\"4 3\"/>",
        top - 6.0
    );
}

#[cfg(test)]
mod tests {
    use super::{Group, Panel, draw};

    #[test]
    fn each_ratio_has_a_bar_in_proportion_and_its_number() {
        let group = |name: &str, ratios: &[Option<f64>]| Group {
            name: name.to_owned(),
            ratios: ratios.to_vec(),
        };
        let groups = vec![group("one", &[Some(1.1), Some(5.5)]), group("other", &[None, None])];
        let panel = Panel { title: "ranker".to_owned(), groups };
        let svg = draw("Ratios", &["1 client".to_owned(), "16 clients".to_owned()], &[panel]);
        // 550 points are the longest bar.
        assert!(svg.contains("width=\"550.0\"") && svg.contains(">5.5</text>"), "{svg}");
        assert!(svg.contains("width=\"110.0\"") && svg.contains(">1.1</text>"), "{svg}");
        assert_eq!(svg.matches("not measured").count(), 1);
        // The background, two of the legend, two bars.
        assert_eq!(svg.matches("<rect").count(), 5);
    }
}
