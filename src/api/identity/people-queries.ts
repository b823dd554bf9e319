import type { Role } from '../../shared/access/roles.ts';
import { NotFoundError } from '../../shared/platform/errors/errors.ts';
import { getOrganization } from '../access/organizations.ts';
import { assertSeesPeople, withAddresses } from '../access/people-access.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { Caller } from '../platform/http/request.ts';
import { createPeopleQueryRepository, type TeamPageRow } from './people-query-repository.ts';

interface PageQuery {
  /** Part of the name. */
  readonly text: string | null;
  /** Null: the first page. */
  readonly after: string | null;
  readonly limit: number;
}

/** Lists are sorted by name; `next` is the last name of a page, null on the last page. */
export class PeopleQueries {
  readonly #context: ApiContext;

  constructor(context: ApiContext) {
    this.#context = context;
  }

  async listMembers(caller: Caller, organization: string, query: PageQuery & { readonly role: Role | null }) {
    assertSeesPeople(caller);
    const { queries, organizationId } = await this.#open(organization);
    const rows = await queries.listMembers(organizationId, { ...query, limit: query.limit + 1 });
    const items = withAddresses(caller, rows).map(({ since, ...member }) => ({
      ...member,
      since: since.toISOString(),
    }));
    return cut(items, query.limit, ({ login }) => login);
  }

  async listTeams(caller: Caller, organization: string, query: PageQuery) {
    const { queries, organizationId } = await this.#open(organization);
    const rows = await queries.listTeams(organizationId, caller.userId, { ...query, limit: query.limit + 1 });
    return cut(
      rows.map(({ id: _id, ...team }) => team),
      query.limit,
      ({ name }) => name,
    );
  }

  async getTeam(caller: Caller, organization: string, name: string) {
    const { id: _id, ...team } = await this.#findTeam(caller, organization, name);
    return team;
  }

  async listTeamMembers(caller: Caller, organization: string, team: string, query: PageQuery) {
    assertSeesPeople(caller);
    const { id } = await this.#findTeam(caller, organization, team);
    const queries = createPeopleQueryRepository(this.#context.db);
    return cut(
      await queries.listTeamMembers(id, { ...query, limit: query.limit + 1 }),
      query.limit,
      ({ login }) => login,
    );
  }

  async #findTeam({ userId }: Caller, organization: string, name: string): Promise<TeamPageRow> {
    const { queries, organizationId } = await this.#open(organization);
    const team = await queries.findTeam(organizationId, userId, name);
    if (!team) throw new NotFoundError(`There is no team ${JSON.stringify(name.slice(0, 100))}`);
    return team;
  }

  async #open(name: string) {
    const { db } = this.#context;
    const organization = await getOrganization(db, name);
    return { queries: createPeopleQueryRepository(db), organizationId: organization.id };
  }
}

function cut<T>(rows: readonly T[], limit: number, nameOf: (row: T) => string) {
  const items = rows.slice(0, limit);
  const last = items.at(-1);
  return { items, next: last !== undefined && rows.length > limit ? nameOf(last) : null };
}
