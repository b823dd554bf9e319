import type { Queryable } from '../../shared/platform/db/sql.ts';
import {
  createImportRunRepository,
  type ImportRunKind,
  type ImportRunStack,
} from '../../shared/stacks/import-run-repository.ts';
import { operator } from '../admin/operator.ts';

/** Notes what a run does with each stack, as it goes. */
export interface ImportRun {
  note(stack: ImportRunStack): Promise<unknown>;
  end(): Promise<unknown>;
}

/** Begins the record of a run, which the pages of the organization show. */
export async function beginRun(
  db: Queryable,
  organizationId: string,
  { kind, location }: { readonly kind: ImportRunKind; readonly location: string },
): Promise<ImportRun> {
  const runs = createImportRunRepository(db);
  const id = await runs.begin(organizationId, { kind, source: withoutSecrets(location), by: operator() });
  return { note: (stack) => runs.noteStack(id, stack), end: () => runs.end(id) };
}

/** An address without the parts in which credentials may be. */
function withoutSecrets(location: string): string {
  return location.replace(/[?#].*$/s, '').replace(/^([a-z0-9+.-]+:\/\/)[^/]*@/i, '$1');
}
