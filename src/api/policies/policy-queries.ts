import { readsByGrants } from '../access/reads-by-grants.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { groupNotFound, seenBy } from './policies.ts';
import { createPolicyGroupRepository } from './policy-group-repository.ts';
import { packRepository } from './policy-pack-service.ts';

export class PolicyQueries {
  readonly #db: ApiContext['db'];

  constructor({ db }: Pick<ApiContext, 'db'>) {
    this.#db = db;
  }

  /** Packs by name, with newest versions and groups. */
  async listPacks(organization: string, after: string | null, limit: number) {
    const rows = await packRepository(this.#db).listPage(organization, after, limit + 1);
    const page = rows.slice(0, limit);
    const items = page.map(({ groups, versions, ...pack }) => ({
      ...pack,
      versions: (JSON.parse(versions) as { version: number; tag: string; publishedAt: string }[]).map((each) => ({
        ...each,
        publishedAt: new Date(each.publishedAt).toISOString(),
      })),
      groups: JSON.parse(groups) as { group: string; tag: string }[],
    }));
    return { items, next: rows.length > limit ? (page.at(-1)?.name ?? null) : null };
  }

  /** Groups by name, the default group first. */
  async listGroups(
    caller: Caller,
    organization: string,
    after: { readonly isDefault: boolean; readonly name: string } | null,
    limit: number,
  ) {
    const facts = seenBy(caller);
    const read = readsByGrants(this.#db, [{ name: organization, facts: facts && JSON.stringify(facts) }]);
    const rows = await createPolicyGroupRepository(read).listPage(organization, facts, after, limit + 1);
    const page = rows.slice(0, limit);
    return { items: page, next: rows.length > limit ? (page.at(-1) ?? null) : null };
  }

  async getGroup(organization: string, name: string) {
    const groups = createPolicyGroupRepository(this.#db);
    const group = await groups.find(organization, name);
    if (!group) throw groupNotFound(organization, name);
    const packs = await groups.listPacks(group.id);
    return {
      name: group.name,
      isDefault: group.isDefault,
      packs: packs.map(({ config, ...pack }) => ({ ...pack, config: JSON.parse(config) as Record<string, unknown> })),
    };
  }

  /** Stacks by name: those that the caller may read; for callers who manage groups, all. */
  async listStacks(
    caller: Caller,
    { name, organization }: { readonly organization: string; readonly name: string },
    after: { readonly project: string; readonly stack: string } | null,
    limit: number,
  ) {
    const groups = createPolicyGroupRepository(this.#db);
    const group = await groups.find(organization, name);
    if (!group) throw groupNotFound(organization, name);
    const rows = await groups.listStackPage(group.id, seenBy(caller), after, limit + 1);
    const page = rows.slice(0, limit);
    return { items: page, next: rows.length > limit ? (page.at(-1) ?? null) : null };
  }
}
