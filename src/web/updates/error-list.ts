import type { Diagnostic, UpdateProgress } from './update-progress.ts';

export interface UpdateError {
  readonly diagnostic: Diagnostic;
  readonly urn: string | null;
  readonly type: string;
}

/** The errors are in the order in which they came. */
export function listErrors(progress: UpdateProgress): UpdateError[] {
  const found = progress.diagnostics.map((diagnostic) => ({ diagnostic, urn: null as string | null, type: '' }));
  for (const { diagnostics, type, urn, worst } of progress.rows.values()) {
    if (worst === 'error') found.push(...diagnostics.map((diagnostic) => ({ diagnostic, urn, type })));
  }
  return found
    .filter(({ diagnostic }) => diagnostic.severity === 'error')
    .sort((one, other) => one.diagnostic.sequence - other.diagnostic.sequence);
}
