//! Effects of a full factorial experiment with two levels: every combination of k factors, each changed
//! or not, was run.
//!
//! The standard definitions (Box, Hunter and Hunter, "Statistics for Experimenters", chapter 5). Runs are in
//! Yates' order: bit i of a run's place says whether factor i was changed in it, so that for factors a, b, c
//! the order is (1), a, b, ab, c, ac, bc, abc. An effect is a set of factors, written as bits, too.
//!
//! - The main effect of a is the mean of all runs with a minus the mean of all runs without it.
//! - The interaction of a and b is half the difference between the effect of a where b was changed and the
//!   effect of a where it was not. It is the same with a and b exchanged, and is the mean of the runs that
//!   have both or neither minus the mean of those that have one of them.
//! - The interaction of three and more goes on like that: half the difference of the interaction of the others.
//!
//! Each run counts in every effect, so k factors take no more runs for the same precision than one does.
//! Left out: fractions of the full experiment, more than two levels. Next: [`crate::difference`] tests the
//! two halves of an effect against each other over repeats.

use crate::describe::mean;

/// Factors that one experiment takes at most here: 2^16 runs are more than anyone makes.
pub const FACTORS_MAX: u32 = 16;

/// The two halves of all runs that an effect is the difference of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Halves {
    /// Mean of the runs that count against the effect: without the factor, or with one of two.
    pub against: f64,
    /// Mean of the runs that count for it: with the factor, or with both or neither of two.
    pub towards: f64,
}

impl Halves {
    /// The halves of `values`, one for each combination in Yates' order, for the factors in `effect`.
    ///
    /// `None` when the number of values is no power of two, one of them is not finite, or the effect is of
    /// no factor or of one that the experiment does not have.
    pub fn of(values: &[f64], effect: u32) -> Option<Self> {
        let whole = values.len().is_power_of_two() && values.iter().all(|value| value.is_finite());
        if !whole || effect == 0 || effect as usize >= values.len() {
            return None;
        }
        // Every factor of the effect that a run does not have turns the run's sign round.
        let is_towards = |run: usize| (effect & !(run as u32)).count_ones().is_multiple_of(2);
        let half = |towards: bool| -> Vec<f64> {
            let of_half = values.iter().enumerate().filter(|(run, _)| is_towards(*run) == towards);
            of_half.map(|(_, &value)| value).collect()
        };
        Some(Self { against: mean(&half(false))?, towards: mean(&half(true))? })
    }

    /// The effect itself, in the unit of the values.
    pub fn effect(self) -> f64 {
        self.towards - self.against
    }
}

/// All effects of so many factors: one by one, then all pairs, and so on; those of one size in the order of
/// their factors.
///
/// # Panics
/// With more than [`FACTORS_MAX`] factors.
pub fn effects(factors: u32) -> Vec<u32> {
    assert!(factors <= FACTORS_MAX, "an experiment of {factors} factors");
    let mut all: Vec<u32> = (1..1 << factors).collect();
    // Bits turned round put the effect with the lowest factors first among those of its size.
    all.sort_by_key(|effect| (effect.count_ones(), std::cmp::Reverse(effect.reverse_bits())));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn effect(values: &[f64], effect: u32) -> f64 {
        Halves::of(values, effect).unwrap().effect()
    }

    /// (1) = 20, a = 30, b = 40, ab = 52. Effect of a: ((30 - 20) + (52 - 40)) / 2 = 11; of b:
    /// ((40 - 20) + (52 - 30)) / 2 = 21; their interaction: ((52 - 40) - (30 - 20)) / 2 = 1.
    #[test]
    fn two_factors_by_hand() {
        let values = [20.0, 30.0, 40.0, 52.0];
        assert_eq!(Halves::of(&values, 0b01), Some(Halves { against: 30.0, towards: 41.0 }));
        assert_eq!([0b01, 0b10, 0b11].map(|of| effect(&values, of)), [11.0, 21.0, 1.0]);
    }

    /// The case of the two commits: neither alone changes anything, both together do. Each effect and the
    /// interaction are half of it.
    #[test]
    fn what_only_both_together_do_is_shared_by_effects_and_interaction() {
        let values = [100.0, 100.0, 100.0, 140.0];
        assert_eq!([0b01, 0b10, 0b11].map(|of| effect(&values, of)), [20.0, 20.0, 20.0]);
    }

    /// The pilot plant of Box, Hunter and Hunter (table 5.3): yield by temperature, concentration and
    /// catalyst. The book's effects: T 23, C -5, K 1.5, TC 1.5, TK 10, CK 0, TCK 0.5.
    #[test]
    fn three_factors_give_the_published_values() {
        let values = [60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0];
        assert_eq!(effects(3), [0b001, 0b010, 0b100, 0b011, 0b101, 0b110, 0b111]);
        let found: Vec<f64> = effects(3).into_iter().map(|of| effect(&values, of)).collect();
        assert_eq!(found, [23.0, -5.0, 1.5, 1.5, 10.0, 0.0, 0.5]);
    }

    /// An interaction is half the difference of the effects with and without the other factor.
    #[test]
    fn interactions_of_three_factors_are_halves_of_differences() {
        let values = [60.0, 72.0, 54.0, 68.0, 52.0, 83.0, 45.0, 80.0];
        let (without, with) = values.split_at(4);
        for pair in [0b01, 0b10, 0b11] {
            let by_hand = (effect(with, pair) - effect(without, pair)) / 2.0;
            assert_eq!(effect(&values, pair | 0b100), by_hand, "{pair:b}");
        }
    }

    #[test]
    fn effects_come_by_size_and_then_by_their_factors() {
        let four: Vec<String> = effects(4)
            .into_iter()
            .map(|effect| {
                "abcd".chars().enumerate().filter(|(i, _)| effect >> i & 1 == 1).map(|(_, c)| c).collect()
            })
            .collect();
        assert_eq!(four.join(" "), "a b c d ab ac ad bc bd cd abc abd acd bcd abcd");
        assert_eq!(effects(0), []);
    }

    #[test]
    fn what_is_no_full_experiment_has_no_effects() {
        for values in [&[1.0][..], &[1.0, 2.0, 3.0], &[1.0, f64::NAN], &[]] {
            assert_eq!(Halves::of(values, 1), None, "{values:?}");
        }
        assert_eq!(Halves::of(&[1.0, 2.0], 0), None, "the mean is no effect");
        assert_eq!(Halves::of(&[1.0, 2.0], 0b10), None, "there is no second factor");
    }
}
