import { mainKinds } from './main-kinds.ts';
import { rowKinds } from './row-kinds.ts';

export const findingKinds = { ...mainKinds, ...rowKinds } as const;

export type FindingKind = keyof typeof findingKinds;

export interface Finding {
  readonly kind: FindingKind;
  /** Name or id of the faulty object. */
  readonly object: string;
  readonly detail: string | null;
  readonly isFixed: boolean;
}

/** Further findings are only counted. */
const keptPerKind = 1_000;

export class FsckReport {
  readonly checked: Record<string, number> = {};
  readonly counts = new Map<FindingKind, { found: number; fixed: number }>();
  readonly findings: Finding[] = [];
  /** Skipped checks, with the reasons. */
  readonly notes: string[] = [];

  add(kind: FindingKind, object: string, { detail = null, isFixed = false }: Partial<Finding> = {}): void {
    const count = this.counts.get(kind) ?? { found: 0, fixed: 0 };
    this.counts.set(kind, { found: count.found + 1, fixed: count.fixed + (isFixed ? 1 : 0) });
    if (count.found < keptPerKind) this.findings.push({ kind, object, detail, isFixed });
  }

  count(what: string, by = 1): void {
    this.checked[what] = (this.checked[what] ?? 0) + by;
  }

  /** Whether there are no findings, or all were repaired. */
  get isSound(): boolean {
    return [...this.counts.values()].every(({ fixed, found }) => fixed === found);
  }
}
