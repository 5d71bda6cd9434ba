//! Correction for asking many questions at once: of twenty rows without any effect one shows
//! p < 0.05 by chance.
//!
//! Bonferroni's: it assumes nothing about dependence, and unlike sharper ones it has an interval of
//! the same family for every p value, so that no interval contradicts the verdict beside it.

/// Questions that are asked together, such as the rows of one table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Family {
    /// How many there are.
    pub tests: usize,
}

impl Family {
    /// The p value of one question, to be compared with what shall hold for all together.
    pub fn adjusted_p(self, p: f64) -> f64 {
        (p * self.tests.max(1) as f64).min(1.0)
    }

    /// The level of each single interval so that all together hold at `level`, such as 0.95.
    pub fn level_of_each(self, level: f64) -> f64 {
        1.0 - (1.0 - level) / self.tests.max(1) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::difference::welch_t_test;
    use proptest::prelude::*;

    #[test]
    fn four_questions_adjust_as_in_the_textbook() {
        let family = Family { tests: 4 };
        assert_eq!([0.01, 0.03, 0.9].map(|p| family.adjusted_p(p)), [0.04, 0.12, 1.0]);
        assert!((family.level_of_each(0.95) - 0.9875).abs() < 1e-12);
        let one = Family { tests: 1 };
        assert!((one.level_of_each(0.95) - 0.95).abs() < 1e-12 && one.adjusted_p(0.04) == 0.04);
    }

    proptest! {
        /// The verdict was corrected and the interval beside it was not: one said "no clear change",
        /// the other that there is one.
        #[test]
        fn the_interval_of_a_family_excludes_zero_exactly_when_its_p_is_small(
            base in prop::collection::vec(0.0_f64..100.0, 3..8),
            new in prop::collection::vec(0.0_f64..140.0, 3..8),
            tests in 1_usize..30,
        ) {
            let family = Family { tests };
            let found = welch_t_test(&base, &new, family.level_of_each(0.95)).unwrap();
            let p = family.adjusted_p(found.p);
            prop_assume!((p - 0.05).abs() > 1e-6);
            prop_assert_eq!(found.low > 0.0 || found.high < 0.0, p < 0.05, "{:?}", found);
        }
    }
}
