import { createGrantRepository, type GrantSubject } from '../../src/shared/access/grant-repository.ts';
import { parseStackPattern } from '../../src/shared/access/grants.ts';
import { allowedBy, deniedBy, type Grantable } from '../../src/shared/access/permissions.ts';
import { createTeamRepository } from '../../src/shared/identity/team-repository.ts';
import { query } from './database.ts';
import type { TestApp } from './test-app.ts';

export interface Person {
  readonly organizationId: string;
  readonly userId: string;
  readonly login: string;
  readonly token: string;
  readonly tokenId: string;
  readonly auth: string;
}

export async function person(app: TestApp, organization: string, role: 'viewer' | 'member' | 'admin'): Promise<Person> {
  const login = `${role}-${Math.random().toString(36).slice(2)}`;
  const token = await app.createUser(organization, role, login);
  const [row] = await query<{ organizationId: string; userId: string; tokenId: string }>(
    app,
    `select o.id as "organizationId", u.id as "userId", t.id as "tokenId"
     from users u join api_tokens t on t.user_id = u.id, organizations o where u.login = $1 and o.name = $2`,
    [login, organization],
  );
  if (!row) throw new Error('the user was not created');
  return { ...row, login, token, auth: `token ${token}` };
}

export interface Selection {
  /** `project/stack`, with `*`. */
  readonly stacks?: string;
  readonly tag?: readonly [string, string | null];
}

/** Adds a grant and returns its id. */
export function grant(
  app: TestApp,
  organizationId: string,
  subject: GrantSubject,
  effect: 'allow' | 'deny',
  names: readonly Grantable[],
  { stacks = '*/*', tag }: Selection = {},
): Promise<string> {
  const pattern = parseStackPattern(stacks);
  return createGrantRepository(app.context.db).insert({
    organizationId,
    effect,
    permissions: effect === 'allow' ? allowedBy(names) : deniedBy(names),
    projectPattern: pattern.project,
    stackPattern: pattern.stack,
    tagName: tag?.[0] ?? null,
    tagValue: tag?.[1] ?? null,
    subject,
    createdBy: null,
  });
}

/** Returns the id of the team. */
export async function team(
  app: TestApp,
  organizationId: string,
  name: string,
  userIds: readonly string[],
): Promise<string> {
  const teams = createTeamRepository(app.context.db);
  const id = await teams.insert(organizationId, { name, displayName: name, description: '' });
  if (id === null) throw new Error('the team exists');
  for (const userId of userIds) await teams.setMember(id, userId, false);
  return id;
}
