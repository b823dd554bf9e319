import { ConflictError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { type JsonSpan, scanJsonInSlices, sliceOf } from '../../shared/platform/json/json-text.ts';
import { denseSliceBytes } from '../../shared/platform/slices/slices.ts';
import type { ResourceView } from '../../shared/search/resource-facts.ts';
import { resourceKey } from '../../shared/search/resource-key.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import {
  createResourceRepository,
  type IndexedResource,
  type IndexedStack,
  type ResourceFilter,
  type ResourcePosition,
} from '../search/resource-repository.ts';
import { noSuchVersion } from './no-such-version.ts';
import { findResource } from './resources/find-resource.ts';
import { readGraph } from './resources/read-graph.ts';
import { redactedDigest, redactedJsonInSlices } from './resources/redacted-json.ts';
import { authorView, blameResource } from './resources/resource-blame.ts';

/** Larger inputs or outputs are not shown. */
const maxViewBytes = 1024 * 1024;
/** Copies in memory on their way to the client, which are also larger than the text. */
const copies = 16;
const maxDependents = 200;
/** Dependencies of a resource, as in the index. */
const maxDependencies = 2_000;
const providerPrefix = 'pulumi:providers:';

/** The newest state's resources: from the index, except for inputs and outputs. */
export class ResourceService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** In the order of type and name. */
  async list(ref: StackRef, filter: ResourceFilter, after: ResourcePosition | null, limit: number) {
    const stack = await this.#find(ref);
    const rows = await createResourceRepository(this.#context.db).list(stack.stackId, filter, after, limit + 1);
    const items = rows.slice(0, limit).map(resourceView);
    const last = rows.length > limit ? rows[limit - 1] : undefined;
    return { items, next: last ? { place: last.place, key: last.key } : null, ...versionsOf(stack) };
  }

  /**
   * Includes the inputs and outputs of the newest state, or of a version; secrets are redacted. For an older version, only data of its
   * state is shown. `digests` identify the shown parts. Throws the errors of `scan`.
   */
  async get(scan: StateScan, ref: StackRef, urn: string, version: number | null) {
    const stack = await this.#find(ref);
    const key = resourceKey(urn);
    const view = await this.#view(scan, ref, stack, urn, version);
    const sizes = ['inputs', 'outputs'].map((part) => view.raw(part)?.length ?? 0);
    await scan.hold(copies * sizes.reduce((sum, size) => sum + Math.min(size, maxViewBytes), 0), ref.organization);
    const rows = createResourceRepository(this.#context.db);
    const [indexed] = version === null ? await rows.listByKeys(stack.stackId, [key]) : [];
    const dependencies = await view.strings('dependencies', maxDependencies);
    return {
      ...resourceView(indexed ?? notIndexed(view, key, dependencies.length)),
      parent: view.string('parent') || null,
      protect: view.isTrue('protect'),
      id: view.string('id') || null,
      inputs: await redactedJsonInSlices(view.raw('inputs'), maxViewBytes),
      outputs: await redactedJsonInSlices(view.raw('outputs'), maxViewBytes),
      digests: {
        inputs: await redactedDigest(view.raw('inputs'), maxViewBytes),
        outputs: await redactedDigest(view.raw('outputs'), maxViewBytes),
      },
      dependencies,
      dependents: version === null ? await rows.listDependents(stack.stackId, key, maxDependents) : [],
      ...versionsOf(stack),
    };
  }

  /** The version that set each property in the newest state, as far as the index knows. Throws the errors of `scan`. */
  async blame(scan: StateScan, ref: StackRef, urn: string) {
    const stack = await this.#find(ref);
    const view = await this.#view(scan, ref, stack, urn, null);
    const blame = await blameResource(scan, createResourceRepository(this.#context.db), stack, view);
    return { ...blame, ...versionsOf(stack) };
  }

  /**
   * Raw JSON from the newest state. `digest`: that of the part as it was shown, or null. Throws ConflictError if the part has changed
   * since, and the errors of `scan`.
   */
  async readProperty(
    scan: StateScan,
    ref: StackRef,
    urn: string,
    part: 'inputs' | 'outputs',
    path: readonly (string | number)[],
    digest: string | null,
  ): Promise<Buffer | null> {
    const view = await this.#view(scan, ref, await this.#find(ref), urn, null);
    const values = view.raw(part);
    // An item of a list may have moved: its old position may hold another secret.
    if (digest !== null && digest !== (await redactedDigest(values, maxViewBytes)))
      throw new ConflictError('The resource has changed since it was shown: look at it again');
    if (values === null) return null;
    let found: Buffer | null = null;
    const onValue = (at: readonly (string | number)[], span: JsonSpan): void => {
      // If a member is repeated, the last one counts.
      if (at.length === path.length && at.every((each, index) => each === path[index])) found = sliceOf(values, span);
    };
    await scanJsonInSlices(values, path.length, onValue, denseSliceBytes);
    return found;
  }

  /** Newest first. */
  async history(ref: StackRef, urn: string, before: number | null, limit: number) {
    const stack = await this.#find(ref);
    const rows = await createResourceRepository(this.#context.db).listChanges(
      stack.stackId,
      resourceKey(urn),
      before,
      limit + 1,
    );
    const items = rows.slice(0, limit).map(authorView);
    const next = rows.length > limit ? (items.at(-1)?.version ?? null) : null;
    return { items, next, knownFrom: stack.knownFrom, ...versionsOf(stack) };
  }

  /** Throws the errors of `scan`. */
  async graph(scan: StateScan, ref: StackRef) {
    const stack = await this.#find(ref);
    const rows = createResourceRepository(this.#context.db);
    return { ...(await readGraph(scan, rows, stack.stackId, ref.organization)), ...versionsOf(stack) };
  }

  async #find(ref: StackRef): Promise<IndexedStack> {
    const stack = await createResourceRepository(this.#context.db).find(ref);
    if (!stack) throw stackNotFound(ref);
    return stack;
  }

  /** A resource of the newest state, or of a version. */
  async #view(
    scan: StateScan,
    ref: StackRef,
    { stackId }: IndexedStack,
    urn: string,
    version: number | null,
  ): Promise<ResourceView> {
    const state = version === null ? (await scan.readHead(ref))?.state : await scan.readVersion(stackId, version);
    if (!state) throw version === null ? stackNotFound(ref) : noSuchVersion(version);
    const view = await findResource(scan, state, urn);
    if (view === null) throw new NotFoundError(`The stack has no resource ${JSON.stringify(urn.slice(0, 500))}`);
    return view;
  }
}

function versionsOf({ headVersion, indexedVersion, newestVersion }: IndexedStack) {
  return { indexedVersion, headVersion, newestVersion };
}

function resourceView({ place: _place, key: _key, provider, ...row }: IndexedResource) {
  return { ...row, provider: provider?.startsWith(providerPrefix) ? provider.slice(providerPrefix.length) : provider };
}

/** The view of a resource that is newer than the index. */
function notIndexed(view: ResourceView, key: string, dependencies: number): IndexedResource {
  const { urn } = view;
  return {
    ...{ key, place: '', urn, type: view.string('type'), name: urn.slice(urn.lastIndexOf('::') + 2), parent: null },
    ...{ provider: null, providerVersion: null, protect: false, isCustom: view.isTrue('custom') },
    ...{ isExternal: view.isTrue('external'), isDeleted: false, dependencies },
    ...{ children: 0, changedIn: null },
  };
}
