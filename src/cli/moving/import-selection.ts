import { assertAllMatch, isSelected } from './import-plan.ts';
import type { MovingSource, SourceGap, SourceListing, SourceStack } from './moving-source.ts';
import { readPlannedNames } from './plan-report.ts';

interface Selection {
  readonly organization: string;
  readonly patterns: readonly string[];
  /** Selects only the stacks in this plan. */
  readonly planFile: string | null;
}

/** The selected stacks of the source, and the gaps in the selection. Throws TransferError. */
export async function selectStacks(
  source: MovingSource,
  listing: SourceListing,
  { organization, patterns, planFile }: Selection,
): Promise<{ readonly stacks: readonly SourceStack[]; readonly gaps: readonly SourceGap[] }> {
  const stacks = listing.stacks.filter((stack) => isSelected(stack, patterns));
  const gaps = (listing.gaps ?? []).filter(({ name }) => name === null || isSelected({ name }, patterns));
  const lacking = gaps.flatMap(({ name }) => name ?? []);
  assertAllMatch(patterns, [...stacks.map(({ name }) => name), ...lacking], source);
  if (planFile === null) return { stacks, gaps };
  const listed = await readPlannedNames(planFile, { from: source.location, organization });
  const known = new Set([...stacks.map(({ name }) => name), ...lacking]);
  const absent = [...listed].filter((name) => !known.has(name) && isSelected({ name }, patterns));
  return {
    stacks: stacks.filter(({ name }) => listed.has(name)),
    gaps: [
      ...gaps.filter(({ name }) => name === null || listed.has(name)),
      ...absent.map((name) => ({ name, text: `${name} is in the plan, but not in ${source.location}` })),
    ],
  };
}
