import type { Queryable } from '../../shared/platform/db/sql.ts';
import { isOutage } from '../../shared/platform/db/sqlstate.ts';
import type { Logger } from '../../shared/platform/logger/logger.ts';
import {
  createImportRunRepository,
  type ImportRunKind,
  type ImportRunStack,
} from '../../shared/stacks/import-run-repository.ts';
import { operator } from '../admin/operator-name.ts';
import type { SourceGap } from './moving-source.ts';

/** Records results immediately, or later if the database is not available. */
export interface ImportRun {
  note(stack: ImportRunStack): Promise<unknown>;
  end(): Promise<unknown>;
}

/** Only an import reads these facts of a stack. */
export const notRead = { previews: 0, secretsProvider: null, quarantine: null };

export function gapsOf(gaps: readonly SourceGap[], stack: string): string[] {
  return gaps.flatMap(({ name, text }) => (name === stack ? [text] : []));
}

/** Records gaps of the source that no recorded stack has. */
export async function noteGaps(
  run: ImportRun,
  gaps: readonly SourceGap[],
  { location, noted }: { readonly location: string; readonly noted: readonly string[] },
): Promise<void> {
  const others = Map.groupBy(
    gaps.filter(({ name }) => name === null || !noted.includes(name)),
    ({ name }) => name ?? withoutSecrets(location),
  );
  for (const [name, texts] of others) {
    const [, project = null, stack = name] = /^([^/]+)\/([^/]+)$/.exec(name) ?? [];
    await run.note({ ...notRead, name, project, stack, versions: 0, notes: texts.map(({ text }) => text) });
  }
}

/** For a run that is not recorded. */
export const unrecordedRun: ImportRun = { note: async () => {}, end: async () => {} };

/** The pages of the organization show the run. */
export async function beginRun(
  { db, logger }: { readonly db: Queryable; readonly logger: Logger },
  organizationId: string,
  { kind, location }: { readonly kind: ImportRunKind; readonly location: string },
): Promise<ImportRun> {
  const runs = createImportRunRepository(db);
  const id = await runs.begin(organizationId, { kind, source: withoutSecrets(location), by: operator() });
  const unsaved: ImportRunStack[] = [];
  const save = async (): Promise<void> => {
    for (let stack = unsaved.shift(); stack; stack = unsaved.shift()) {
      try {
        await runs.noteStack(id, stack);
      } catch (error) {
        unsaved.push(stack);
        throw error;
      }
    }
  };
  const unlessOutage = (error: unknown): void => {
    if (!isOutage(error)) throw error;
    logger.warn({ err: error }, 'what the run did could not be noted');
  };
  return {
    note: async (stack) => {
      unsaved.push(stack);
      await save().catch(unlessOutage);
    },
    end: async () => {
      await save().catch(unlessOutage);
      await runs.end(id).catch(unlessOutage);
    },
  };
}

/** The address without parts that may contain credentials. */
function withoutSecrets(location: string): string {
  return location.replace(/[?#].*$/s, '').replace(/^([a-z0-9+.-]+:\/\/)[^/]*@/i, '$1');
}
