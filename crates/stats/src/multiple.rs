//! Correction for asking many questions at once: of twenty rows without any effect one shows
//! p < 0.05 by chance.

/// Holm's step-down correction: adjusted p values in the order given, each still comparable with
/// the level that the family as a whole shall hold. It assumes nothing about dependence.
pub fn holm(p_values: &[f64]) -> Vec<f64> {
    let mut order: Vec<usize> = (0..p_values.len()).collect();
    order.sort_by(|&a, &b| p_values[a].total_cmp(&p_values[b]));
    let mut adjusted = vec![1.0; p_values.len()];
    let mut largest_so_far = 0.0_f64;
    for (rank, &index) in order.iter().enumerate() {
        let questions_left = (p_values.len() - rank) as f64;
        largest_so_far = largest_so_far.max((p_values[index] * questions_left).min(1.0));
        adjusted[index] = largest_so_far;
    }
    adjusted
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_questions_adjust_as_in_the_textbook() {
        let adjusted = holm(&[0.01, 0.04, 0.03, 0.005]);
        for (found, wanted) in adjusted.iter().zip([0.03, 0.06, 0.06, 0.02]) {
            assert!((found - wanted).abs() < 1e-12, "{adjusted:?}");
        }
    }

    #[test]
    fn one_question_stays_as_it_is_and_none_exceeds_one() {
        assert_eq!(holm(&[0.04]), [0.04]);
        assert_eq!(holm(&[0.9, 0.8]), [1.0, 1.0]);
        assert_eq!(holm(&[]), Vec::<f64>::new());
    }
}
