//! A chart of counts over time: one column a period, stacked by source. The numbers are in a table beside it.

use leptos::prelude::*;

/// One column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name in full.
    pub name: String,
    /// Its name in short, beneath it.
    pub short: String,
    /// Its parts from below: the class that colours it, what it counts, and how many.
    pub parts: Vec<(&'static str, &'static str, i64)>,
}

impl Column {
    fn total(&self) -> i64 {
        self.parts.iter().map(|(_, _, count)| count).sum()
    }
}

/// The upper end of the scale: the next 1, 2 or 5 with zeros, and an even number so that its half is whole.
fn scale(most: i64) -> i64 {
    let mut step = 1;
    loop {
        for top in [2 * step, 4 * step, 10 * step] {
            if most <= top {
                return top;
            }
        }
        step *= 10;
    }
}

/// Up to this many columns each has its name beneath it; of more, the first, the middle and the last.
const NAMED: usize = 8;

/// A chart of columns.
#[component]
pub fn Columns(
    /// What it shows, in a sentence, for who does not see it.
    says: String,
    /// The columns.
    columns: Vec<Column>,
) -> impl IntoView {
    let top = scale(columns.iter().map(Column::total).max().unwrap_or_default());
    let count = columns.len();
    let names: Vec<String> = match count {
        0 => Vec::new(),
        1..=NAMED => columns.iter().map(|column| column.short.clone()).collect(),
        _ => [0, count / 2, count - 1].map(|place| columns[place].short.clone()).into(),
    };
    let class = if count > NAMED { "chart-names few" } else { "chart-names" };
    let names = names.into_iter().map(|name| view! { <span>{name}</span> }).collect_view();
    let bars = columns.into_iter().enumerate().map(|(place, column)| {
        let name = format!("{}: {}", column.name, column.total());
        let mut below = 0;
        let parts = column.parts.into_iter().filter(|(_, _, count)| *count > 0).map(|(class, _, count)| {
            below += count;
            // In thousandths, in whole numbers, so that server and browser write the same.
            let (y, height) = (1000 - below * 1000 / top, count * 1000 / top);
            // The least that still shows once its neighbour's edge lies on it.
            view! { <rect class=class x=place * 10 + 1 y=y width="8" height=height.max(12)/> }
        });
        let parts = parts.collect_view();
        view! {
            <g>
                <title>{name}</title>
                <rect class="hover" x=place * 10 y="0" width="10" height="1000"/>
                <g class="parts">{parts}</g>
            </g>
        }
    });
    let bars = bars.collect_view();
    let lines = [0, 500, 1000].map(
        |y| view! { <line class="line" x1="0" x2=count * 10 y1=y y2=y vector-effect="non-scaling-stroke"/> },
    );
    view! {
        <div class="chart">
            <div class="chart-scale" aria-hidden="true">
                <span>{top}</span>
                <span>{top / 2}</span>
                <span>"0"</span>
            </div>
            <svg role="img" aria-label=says viewBox=format!("0 0 {} 1000", count.max(1) * 10) preserveAspectRatio="none">
                {lines.into_iter().collect_view()}
                {bars}
            </svg>
            <div class=class aria-hidden="true">{names}</div>
        </div>
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scale_ends_at_a_round_number_above_all() {
        for (most, top) in
            [(0, 2), (1, 2), (3, 4), (5, 10), (10, 10), (11, 20), (39, 40), (41, 100), (101, 200)]
        {
            assert_eq!(scale(most), top, "{most}");
        }
    }
}
