import type { Queryable } from '../../shared/platform/db/sql.ts';
import { createStatisticsRepository } from '../../shared/statistics/statistics-repository.ts';
import { countsOf, describeUnusual } from '../../shared/statistics/update-counts.ts';
import type { PreviewCheck } from '../../shared/updates/rules/preview-check.ts';

/**
 * What the user of a new update should know about its preview: that there is none, or what it does more of than earlier updates. Costs
 * nothing where no rule asks for previews.
 */
export async function previewMessages(
  tx: Queryable,
  check: PreviewCheck | null,
  stackId: string,
  kind: string,
): Promise<readonly string[]> {
  if (check?.problem) return [check.problem];
  if (!check?.previewId) return [];
  const statistics = createStatisticsRepository(tx);
  const usual = await statistics.findUsual(stackId, kind, null);
  const unusual = describeUnusual(countsOf(await statistics.findChanges(check.previewId)), usual);
  return unusual === null ? [] : [`Its preview ${unusual} (of ${usual?.count} updates in 90 days)`];
}
