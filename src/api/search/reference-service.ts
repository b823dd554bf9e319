import { createDueIndexRepository, type IndexLag } from '../../shared/search/due-index-repository.ts';
import { formatStackRef, parseQualifiedName, type StackRef } from '../../shared/stacks/names.ts';
import { createStackListRepository } from '../../shared/stacks/stack-list-repository.ts';
import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { createReferenceRepository, type ReferenceEdge } from './reference-repository.ts';
import type { SearchedOrganization } from './search-repository.ts';

const maxStacks = 500;
const maxReferences = 2_000;

export interface ReferenceNode extends StackRef {
  /** False also if the stack does not exist. */
  readonly isReadable: boolean;
}

/**
 * References in the newest states of stacks. A stack that the caller may not read is named only if a state that the caller may read names
 * it.
 */
export class ReferenceService {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  /** References of at most 500 stacks. `behind`: the lag of the index. */
  async graph(caller: Caller, organization: string) {
    const organizations = await this.#organizations(caller);
    const home = organizations.find(({ name }) => name === organization);
    const found = home
      ? await createReferenceRepository(readsByGrants(this.#context.db, [home])).listOfOrganization(home, {
          limit: maxReferences + 1,
          stacks: maxStacks + 1,
        })
      : [];
    const names = new Set<string>();
    const edges: { from: string; to: string }[] = [];
    let isCut = found.length > maxReferences;
    for (const row of found.slice(0, maxReferences)) {
      const ends = [formatStackRef(row), row.reads] as const;
      const added = ends.filter((name) => !names.has(name));
      if (names.size + new Set(added).size > maxStacks) {
        isCut = true;
        continue;
      }
      for (const name of added) names.add(name);
      if (ends[0] !== ends[1]) edges.push({ from: ends[0], to: ends[1] });
    }
    const behind = home ? await this.#readLag([home]) : null;
    return { nodes: await this.#nodes(organizations, [...names]), edges, isCut, behind };
  }

  /** The stacks that a stack reads, and those that read it. */
  async ofStack(caller: Caller, ref: StackRef) {
    const organizations = await this.#organizations(caller);
    const rows = createReferenceRepository(readsByGrants(this.#context.db, organizations));
    const name = formatStackRef(ref);
    const reads = await rows.listOfStack(ref, maxStacks + 1);
    const consumers: ReferenceEdge[] = [];
    for (const organization of organizations)
      if (consumers.length <= maxStacks)
        consumers.push(...(await rows.listConsumers(organization, name, maxStacks + 1)));
    const nodes = await this.#nodes(
      organizations,
      reads.slice(0, maxStacks).map(({ reads: of }) => of),
    );
    return {
      reads: nodes,
      readBy: consumers
        .slice(0, maxStacks)
        .map(({ organization, project, stack }): ReferenceNode => ({ organization, project, stack, isReadable: true })),
      isCut: reads.length > maxStacks || consumers.length > maxStacks,
      behind: await this.#readLag(organizations),
    };
  }

  #readLag(organizations: readonly SearchedOrganization[]): Promise<IndexLag | null> {
    return createDueIndexRepository(readsByGrants(this.#context.db, organizations)).readLag(organizations);
  }

  #organizations({ tokenId }: Caller): Promise<readonly SearchedOrganization[]> {
    return createStackListRepository(this.#context.db).listOrganizations(tokenId, { name: null, from: null });
  }

  async #nodes(organizations: readonly SearchedOrganization[], names: readonly string[]): Promise<ReferenceNode[]> {
    const refs = names.flatMap((name) => parseQualifiedName(name) ?? []);
    const readable = new Set<string>();
    for (const organization of organizations) {
      const own = refs.filter((ref) => ref.organization === organization.name);
      if (own.length === 0) continue;
      for (const name of await createReferenceRepository(this.#context.db).listReadable(organization, own))
        readable.add(name);
    }
    return refs.map((ref) => ({ ...ref, isReadable: readable.has(formatStackRef(ref)) }));
  }
}
