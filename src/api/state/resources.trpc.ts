import { Type } from 'typebox';
import { resourceKey } from '../../shared/search/resource-key.ts';
import { decodeCursor, defaultPage, encodeCursor, input, page, text } from '../access/procedures/inputs.ts';
import { router, stackProcedure, stackScan } from '../access/procedures/trpc.ts';
import type { ResourceService } from './resource-service.ts';
import type { ValueReads } from './value-reads.ts';

declare module '../access/procedures/context.ts' {
  interface ProcedureServices {
    readonly resources: ResourceService;
    readonly valueReads: ValueReads;
  }
}

const CursorFields = Type.Tuple([text(1_000), text(100)]);
const Version = Type.Tuple([Type.Integer({ minimum: 0, maximum: 999_999_999 })]);
const VersionNumber = Type.Integer({ minimum: 1, maximum: 999_999_999 });
const urn = text(8_000);
const ofRead = { kind: 'stack', permission: 'read' } as const;

/** Resources of the newest state. `indexedVersion`: the version up to which a list is complete. */
export const resourcesRouter = router({
  /** In the order of type and name. */
  list: stackProcedure('read')
    .input(input(Type.Object({ text: Type.Optional(text(500)), type: Type.Optional(text(500)), ...page })))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, text: part, type, ...ref } }) => {
      const position = decodeCursor(cursor, CursorFields);
      const after = position && { place: position[0], key: position[1] };
      const filter = { text: part?.trim() || null, type: type || null, within: null };
      const found = await services.resources.list(ref, filter, after, limit);
      return { ...found, next: found.next && encodeCursor([found.next.place, found.next.key]) };
    }),

  /** The children of a resource; for null, the resources without a parent. */
  tree: stackProcedure('read')
    .input(input(Type.Object({ parent: Type.Union([urn, Type.Null()]), ...page })))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, parent, ...ref } }) => {
      const position = decodeCursor(cursor, CursorFields);
      const after = position && { place: position[0], key: position[1] };
      const within = { parent: parent === null ? null : resourceKey(parent) };
      const found = await services.resources.list(ref, { text: null, type: null, within }, after, limit);
      return { ...found, next: found.next && encodeCursor([found.next.place, found.next.key]) };
    }),

  /** The resource of the newest state or of a version; secrets are redacted. The read is recorded. */
  get: stackScan('read')
    .input(input(Type.Object({ urn, version: Type.Optional(VersionNumber) })))
    .query(async ({ ctx: { caller, request, scan, services }, input: { urn: of, version = null, ...ref } }) => {
      const found = await services.resources.get(scan, ref, of, version);
      const read = { view: 'resource', stackVersion: version ?? 'newest' } as const;
      await services.valueReads.record(request.trail(caller, ofRead, 'stack.export'), caller, ref, read);
      return found;
    }),

  /** If a version is not exact, this or an older version has set the property. */
  blame: stackScan('read')
    .input(input(Type.Object({ urn })))
    .query(({ ctx: { scan, services }, input: { urn: of, ...ref } }) => services.resources.blame(scan, ref, of)),

  /** Newest first. */
  history: stackProcedure('read')
    .input(input(Type.Object({ urn, ...page })))
    .query(async ({ ctx: { services }, input: { cursor, limit = defaultPage, urn: of, ...ref } }) => {
      const [before] = decodeCursor(cursor, Version) ?? [null];
      const found = await services.resources.history(ref, of, before, limit);
      return { ...found, next: found.next === null ? null : encodeCursor([found.next]) };
    }),

  /** The graph of at most 100,000 resources, in the order of lists. */
  graph: stackScan('read').query(({ ctx: { scan, services }, input: ref }) => services.resources.graph(scan, ref)),
});
