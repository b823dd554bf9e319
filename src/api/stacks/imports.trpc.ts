import { Type } from 'typebox';
import type { ImportRunRow } from '../../shared/stacks/import-run-repository.ts';
import { decodeCursor, defaultPage, encodeCursor, Id, input, page } from '../access/procedures/inputs.ts';
import { organizationProcedure, router } from '../access/procedures/trpc.ts';
import type { ImportRuns } from './import-runs.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly importRuns: ImportRuns;
  }
}

const NumberPlace = Type.Tuple([Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER })]);
const NamePlace = Type.Tuple([Type.String({ maxLength: 1_000, pattern: '^[^\\u0000]*$' })]);

/** Runs of `holdfast import`. */
export const importsRouter = router({
  /** The newest first. */
  list: organizationProcedure('manage')
    .input(input(Type.Object(page)))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, organization } }) => {
      const place = decodeCursor(cursor, NumberPlace);
      const { items, next } = await services.importRuns.list(organization, place?.[0] ?? null, limit);
      return { items: items.map(shown), next: next === null ? null : encodeCursor([next]) };
    }),

  get: organizationProcedure('manage')
    .input(input(Type.Object({ id: Id })))
    .query(async ({ ctx: { services }, input: { id, organization } }) =>
      shown(await services.importRuns.get(organization, id)),
    ),

  /** What a run has done with each stack, by name. */
  stacks: organizationProcedure('manage')
    .input(input(Type.Object({ id: Id, ...page })))
    .query(async ({ ctx: { services }, input: { cursor, id, limit = defaultPage, organization } }) => {
      const place = decodeCursor(cursor, NamePlace);
      const { items, next } = await services.importRuns.listStacks(organization, id, place?.[0] ?? null, limit);
      return {
        items: items.map(({ notes, ...item }) => ({ ...item, notes: JSON.parse(notes) as string[] })),
        next: next === null ? null : encodeCursor([next]),
      };
    }),
});

function shown({ differentStacks, endedAt, number: _, startedAt, verifiedAt, verifiedStacks, ...run }: ImportRunRow) {
  return {
    ...run,
    startedAt: startedAt.toISOString(),
    endedAt: endedAt?.toISOString() ?? null,
    sourceKind: sourceKindOf(run.source),
    /** Null: it was not compared with its source since. */
    verified: verifiedAt && {
      at: verifiedAt.toISOString(),
      stacks: verifiedStacks ?? 0,
      differentStacks: differentStacks ?? 0,
    },
  };
}

/** What the address of a source names. */
function sourceKindOf(source: string): 'service' | 'bucket' | 'archive' | 'folder' {
  if (/^https?:/i.test(source)) return 'service';
  if (/^s3:/i.test(source)) return 'bucket';
  return /^archive:|\.(tar|zip|zst|t?gz)$/i.test(source) ? 'archive' : 'folder';
}
