import { Type } from 'typebox';
import { decodeCursor, defaultPage, encodeCursor, input, Name, page, text } from '../access/procedures/inputs.ts';
import {
  organizationProcedure,
  router,
  stackMutation,
  stackScan,
  stackScanMutation,
  userProcedure,
} from '../access/procedures/trpc.ts';
import { UnrecordedReadError } from '../platform/audit-trail/audit-trail.ts';
import type { ManualEdits } from '../state/manual-edits.ts';
import type { ValueReads } from '../state/value-reads.ts';
import type { AttentionQueries } from './attention-queries.ts';
import { StatusFilter } from './stack-filter.ts';
import type { StackQueries } from './stack-queries.ts';
import type { StackService } from './stack-service.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly attention: AttentionQueries;
    readonly stackQueries: StackQueries;
    readonly stacks: StackService;
    readonly manualEdits: ManualEdits;
    readonly valueReads: ValueReads;
  }
}

const maxTags = 20;
const CursorFields = Type.Tuple([Type.String({ pattern: '^\\d{1,17}$' }), Type.String({ format: 'uuid' })]);

const ListInput = Type.Object({
  organization: Type.Optional(Name),
  /** Part of `project/stack`, in any case. */
  text: Type.Optional(text(200)),
  project: Type.Optional(Name),
  tag: Type.Optional(Type.Object({ name: text(100), value: Type.Optional(text(300)) })),
  status: Type.Optional(StatusFilter),
  ...page,
});

const Version = Type.Integer({ minimum: 1, maximum: 999_999_999 });
const ofRead = { kind: 'stack', permission: 'read' } as const;
/** Identifies the pending operation by its position in the list and its resource. */
const Repair = Type.Object({
  index: Type.Integer({ minimum: 0, maximum: 999_999 }),
  urn: text(8_000),
  repair: Type.Union([
    Type.Object({ action: Type.Literal('clear') }),
    Type.Object({
      action: Type.Literal('import'),
      id: Type.String({ minLength: 1, maxLength: 4_000, pattern: '^[^\\u0000]*$' }),
    }),
  ]),
});

export const stacksRouter = router({
  /** The newest change first. */
  list: userProcedure.input(input(ListInput)).query(async ({ ctx: { caller, services }, input: query }) => {
    const limit = query.limit ?? defaultPage;
    const position = decodeCursor(query.cursor, CursorFields);
    const { items, next } = await services.stackQueries.list(caller, {
      organization: query.organization ?? null,
      text: query.text?.trim() || null,
      project: query.project ?? null,
      tag: query.tag ? { name: query.tag.name, value: query.tag.value ?? null } : null,
      status: query.status ?? null,
      before: position && { changedAt: position[0], id: position[1] },
      limit,
    });
    return { items, next: next && encodeCursor([next.changedAt, next.id]) };
  }),

  /** The newest failed, interrupted, drifted and frozen stacks, requests for approvals, and long waits. */
  attention: userProcedure
    .input(input(Type.Object({ organization: Type.Optional(Name) })))
    .query(({ ctx: { caller, request, services }, input: { organization = null } }) =>
      services.attention.list(caller, organization, (target) => request.holder.findAt(target)),
    ),

  /** Names, or values of the tag `name`, with this prefix. */
  tags: organizationProcedure('read')
    .input(input(Type.Object({ name: Type.Optional(text(100)), text: Type.Optional(text(300)), limit: page.limit })))
    .query(async ({ ctx: { caller, services }, input: { limit = maxTags, name = null, organization, text = '' } }) => ({
      items: await services.stackQueries.listTags(caller, organization, { name, begin: text, limit }),
    })),

  /** Secrets are encrypted. The read of the outputs is recorded. */
  get: stackScan('read').query(async ({ ctx: { caller, request, scan, services }, input: ref }) => {
    const { outputs, ...found } = await services.stackQueries.get(scan, caller, ref);
    const isShown = outputs?.some(({ isSecret }) => !isSecret) === true;
    // Operators need the page even if their site is fenced or their database takes no writes: it then shows no outputs.
    const unrecorded = { ...found, outputs: null };
    if (isShown && services.readOnly.isFenced) return unrecorded;
    const read = { view: 'outputs', stackVersion: found.version, createdAt: found.createdAt } as const;
    try {
      if (isShown) await services.valueReads.record(request.trail(caller, ofRead, 'stack.export'), caller, ref, read);
    } catch (error) {
      if (error instanceof UnrecordedReadError) return unrecorded;
      throw error;
    }
    return { ...found, outputs };
  }),

  /** The name of the stack that had this name before a rename; null if there is none that the caller may read. */
  renamed: organizationProcedure('read')
    .input(input(Type.Object({ project: Name, stack: Name })))
    .query(({ ctx: { caller, services }, input: ref }) => services.stackQueries.findRenamed(caller, ref)),

  /** Includes the update that left the operations behind. */
  pending: stackScan('read').query(({ ctx: { scan, services }, input: ref }) =>
    services.stackQueries.pending(scan, ref),
  ),

  /** Clears the operations, or adds the created resources by id; the next refresh reads these. */
  repair: stackScanMutation('write', 'stack.repair')
    .input(input(Type.Object({ headVersion: Version, repairs: Type.Array(Repair, { minItems: 1, maxItems: 200 }) })))
    .mutation(async ({ ctx: { audit, caller, scan, services }, input: { headVersion, repairs, ...ref } }) => ({
      version: await services.manualEdits.repair(ref, repairs, { audit, caller, headVersion, scan }),
    })),

  /** `seen`: null if the tag did not exist. A tag that has changed since is kept. */
  setTag: stackMutation('write', 'stack.tags')
    .input(
      input(
        Type.Object({
          name: text(100),
          value: text(1_000),
          seen: Type.Optional(Type.Union([text(1_000), Type.Null()])),
        }),
      ),
    )
    .mutation(async ({ ctx: { audit, caller, services }, input: { name, seen, value, ...ref } }) => {
      await services.stacks.editTag(caller, ref, { name, seen, value }, audit);
    }),

  /** Succeeds if the tag does not exist. `value`: as the caller has seen it; a tag with another value is kept. */
  removeTag: stackMutation('write', 'stack.tags')
    .input(input(Type.Object({ name: text(100), value: Type.Optional(text(1_000)) })))
    .mutation(async ({ ctx: { audit, caller, services }, input: { name, value, ...ref } }) => {
      await services.stacks.editTag(caller, ref, { name, seen: value, value: null }, audit);
    }),
});
