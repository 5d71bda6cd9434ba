//! How often pages of a mapping are used between two looks, estimated from a sample of shorter ones.
//!
//! The kernel says of a mapping how many of its pages were used since it was asked to forget, and says so again later
//! without forgetting: after 10 ms, after 30 ms, and at the look after that. The more of the pages are used again
//! and again, the flatter is the curve. It is taken for a sum of classes, each of pages that are used by chance
//! every so often ([`EVERY_MS`] on average): `n (1 - exp(-t / every))` of such a class are used within `t`. The sizes
//! of the classes that come nearest to the curve, none below 0, are what is sampled.
//!
//! What is used more often than the shortest class says counts as used that often.

/// How often a page of a class is used, in milliseconds.
pub(crate) const EVERY_MS: [f64; CLASSES] = [3.0, 12.0, 45.0, 160.0, 600.0, 2400.0];
const CLASSES: usize = 6;
/// Steps towards the nearest sizes.
const STEPS: usize = 2000;

/// After a time, so many pages had been used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) after_ms: f64,
    pub(crate) pages: f64,
}

/// Shares of the pages that were used within a look, by class: all together 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Shares([f64; CLASSES]);

/// Share of a class that is used within so many milliseconds.
fn used_within(every_ms: f64, ms: f64) -> f64 {
    1.0 - (-ms / every_ms).exp()
}

impl Shares {
    /// Of a curve, whose last point is a look; nothing where it says nothing.
    pub(crate) fn of(curve: &[Point]) -> Option<Self> {
        let last = curve.last().filter(|last| last.pages >= 1.0 && last.after_ms > 0.0)?;
        let within: Vec<[f64; CLASSES]> =
            curve.iter().map(|point| EVERY_MS.map(|every| used_within(every, point.after_ms))).collect();
        // Multiplicative steps keep every size at 0 or above and never lead away from the curve.
        let mut sizes = [last.pages; CLASSES];
        // The pages of a point weigh as much as they are: of a small count a share is as wrong as of a large one.
        let weight = |point: &Point| 1.0 / point.pages.max(1.0);
        for _ in 0..STEPS {
            let (mut wanted, mut had) = ([0.0; CLASSES], [0.0; CLASSES]);
            for (point, within) in curve.iter().zip(&within) {
                let now: f64 = within.iter().zip(&sizes).map(|(part, size)| part * size).sum();
                for class in 0..CLASSES {
                    let part = within[class] * weight(point);
                    wanted[class] += part * point.pages;
                    had[class] += part * now;
                }
            }
            for (class, size) in sizes.iter_mut().enumerate() {
                *size *= if had[class] > 0.0 { wanted[class] / had[class] } else { 0.0 };
            }
        }
        let mut shares = [0.0; CLASSES];
        for (class, share) in shares.iter_mut().enumerate() {
            *share = sizes[class] * used_within(EVERY_MS[class], last.after_ms);
        }
        let all: f64 = shares.iter().sum();
        (all > 0.0).then(|| Self(shares.map(|share| share / all)))
    }

    /// Of `pages` that were used within a look of this length: how many of each class, and how often each was used.
    pub(crate) fn classes(&self, pages: u64, look_ms: f64) -> [Class; CLASSES] {
        let mut left = pages;
        let mut classes = [Class::default(); CLASSES];
        for (number, class) in classes.iter_mut().enumerate() {
            let is_last = number + 1 == CLASSES;
            let share = (self.0[number] * pages as f64).round() as u64;
            class.pages = if is_last { left } else { left.min(share) };
            left -= class.pages;
            // Of those that were used at all.
            let every = EVERY_MS[number];
            class.uses = ((look_ms / every / used_within(every, look_ms)).round() as u32).max(1);
            class.is_same = every <= look_ms;
        }
        classes
    }
}

/// Pages that are used about as often as each other, within a look.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Class {
    pub(crate) pages: u64,
    /// How often each of them was used.
    pub(crate) uses: u32,
    /// They are used at each look; otherwise some of them are, others at the next one.
    pub(crate) is_same: bool,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses of all pages within 100 ms, estimated, of what they were.
    fn ratio(pages: &[(f64, f64)]) -> f64 {
        let used = |ms: f64| pages.iter().map(|(count, every)| count * used_within(*every, ms)).sum();
        let curve = [10.0, 30.0, 100.0].map(|after_ms| Point { after_ms, pages: used(after_ms) });
        let last = curve[2].pages.round() as u64;
        let classes = Shares::of(&curve).unwrap().classes(last, 100.0);
        assert_eq!(classes.iter().map(|class| class.pages).sum::<u64>(), last);
        let estimated: f64 = classes.iter().map(|class| class.pages as f64 * f64::from(class.uses)).sum();
        estimated / pages.iter().map(|(count, every)| count * 100.0 / every).sum::<f64>()
    }

    /// Of pages that are used at one rate, at two, and at many as under Zipf's law.
    #[test]
    fn uses_are_estimated_within_a_third_while_none_is_faster_than_the_classes() {
        for every in [4.0, 8.0, 20.0, 50.0, 100.0, 300.0] {
            let ratio = ratio(&[(5_000.0, every)]);
            assert!((0.67..1.5).contains(&ratio), "every {every} ms: {ratio}");
        }
        let two = ratio(&[(1_000.0, 5.0), (20_000.0, 200.0)]);
        assert!((0.67..1.5).contains(&two), "{two}");
        let zipf: Vec<(f64, f64)> = (1..20_000).map(|rank| (1.0, 3.0 + 0.05 * f64::from(rank))).collect();
        let zipf = ratio(&zipf);
        assert!((0.67..1.5).contains(&zipf), "{zipf}");
    }

    #[test]
    fn faster_pages_are_used_as_often_as_the_fastest_class() {
        let ratio = ratio(&[(100.0, 0.1)]);
        assert!((0.02..0.05).contains(&ratio), "{ratio}");
    }

    #[test]
    fn a_curve_of_nothing_has_no_shares() {
        assert_eq!(Shares::of(&[]), None);
        assert_eq!(Shares::of(&[Point { after_ms: 100.0, pages: 0.0 }]), None);
    }
}
