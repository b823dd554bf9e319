import type { PersonRow } from '../shared/identity/people-repository.ts';
import { type Role, roles } from '../shared/identity/roles.ts';
import { mintToken } from '../shared/platform/crypto/secret-token.ts';
import type { Database } from '../shared/platform/db/database.ts';
import type { Logger } from '../shared/platform/logger/logger.ts';
import { isLogin, isOrganizationName } from '../shared/stacks/names.ts';
import { type Command, runCommand, type Work } from './command-run.ts';

export const peopleUsage = `  create-organization <organization>
  create-user <login> [--organization <organization>] [--role viewer|member|admin] [--site-admin]
                           makes a new user; of one that exists nothing is changed. The role is member unless said
  add-member <login> --organization <organization> [--role viewer|member|admin]
  set-role <login> viewer|member|admin --organization <organization>
  remove-member <login> --organization <organization>
  deactivate-user <login>  refuses all tokens of the user, and new ones, until
  reactivate-user <login>
  set-site-admin <login>
  unset-site-admin <login>
  create-token <login> [--description <text>] [--days <days>]
  list [--user <login>]    organizations with members, site admins, deactivated users, and tokens
  revoke <token id>
  revoke --user <login>    revokes all tokens of the user

Updates that run under a token end with it, with the user and with the membership: they are cancelled, and what they have saved is
kept. The last admin of an organization and the last site admin are only taken away with --force.`;

const commands: Readonly<Record<string, Command>> = {
  'create-organization': { args: ['organization'], options: [], run: createOrganization },
  'create-user': { args: ['login'], options: ['organization', 'role', 'site-admin'], run: createUser },
  'add-member': { args: ['login'], options: ['organization', 'role'], run: addMember },
  'set-role': { args: ['login', 'role'], options: ['organization', 'force'], run: setRole },
  'remove-member': { args: ['login'], options: ['organization', 'force'], run: removeMember },
  'deactivate-user': { args: ['login'], options: ['force'], run: deactivateUser },
  'reactivate-user': { args: ['login'], options: [], run: reactivateUser },
  'set-site-admin': { args: ['login'], options: [], run: setSiteAdmin },
  'unset-site-admin': { args: ['login'], options: ['force'], run: unsetSiteAdmin },
  'create-token': { args: ['login'], options: ['description', 'days'], run: createToken },
  list: { args: [], options: ['user'], isQuestion: true, run: list },
  revoke: { args: ['token id?'], options: ['user'], run: revoke },
};

export function isPeopleCommand(command: string): boolean {
  return Object.hasOwn(commands, command);
}

/** Runs one of the commands: see runCommand. */
export function runPeopleCommand(
  open: () => Promise<Database>,
  name: string,
  args: readonly string[],
  logger: Logger,
): Promise<number> {
  return runCommand(open, { name, ...(commands[name] as Command) }, args, logger);
}

async function createOrganization({ identity, positionals: [name = ''], say }: Work): Promise<string | null> {
  if (!isOrganizationName(name)) return `${JSON.stringify(name)} is not a valid organization name`;
  const { created } = await identity.ensureOrganization(name);
  say(created ? `Created organization ${name}.` : `Organization ${name} already exists.`);
  return null;
}

async function createUser({ identity, people, positionals: [login = ''], say, values }: Work): Promise<string | null> {
  if (!isLogin(login)) return `${JSON.stringify(login)} is not a valid login`;
  if (values.role !== undefined && values.organization === undefined) return '--role needs --organization';
  const role = toRole(values.role ?? 'member');
  if (role === null) return noRole(values.role);
  const name = values.organization;
  const organization = name === undefined ? null : await identity.findOrganization(name);
  if (name !== undefined && !organization) return noOrganization(name);
  const found = await people.find(login);
  if (!found) {
    const { id } = await identity.ensureUser(login);
    if (values['site-admin']) await people.setSiteAdmin(id, true);
    if (organization) await identity.setMembership(organization.id, id, role);
    const what = [values['site-admin'] ? 'site admin' : '', organization ? `${role} in ${organization.name}` : ''];
    say(`Created user ${[login, ...what.filter((each) => each !== '')].join(', ')}.`);
    return null;
  }
  const differences: string[] = [];
  if (!found.isActive) differences.push(`is deactivated: holdfast admin reactivate-user ${login}`);
  if (values['site-admin'] && !found.siteAdmin)
    differences.push(`is not a site admin: holdfast admin set-site-admin ${login}`);
  if (organization) {
    const membership = await people.findMembership(organization.id, found.id);
    const suffix = `--organization ${organization.name}`;
    if (!membership)
      differences.push(`is not in ${organization.name}: holdfast admin add-member ${login} ${suffix} --role ${role}`);
    else if (values.role !== undefined && membership.role !== role)
      differences.push(
        `is ${membership.role} in ${organization.name}: holdfast admin set-role ${login} ${role} ${suffix}`,
      );
  }
  if (differences.length === 0) {
    say(`User ${login} exists.`);
    return null;
  }
  return [`user ${login} already exists, and nothing was changed. The user`, ...differences].join('\n  ');
}

async function addMember(work: Work): Promise<string | null> {
  const { identity, people, say, values } = work;
  const role = toRole(values.role ?? 'member');
  if (role === null) return noRole(values.role);
  const target = await findTarget(work);
  if (typeof target === 'string') return target;
  const { organization, user } = target;
  const membership = await people.findMembership(organization.id, user.id);
  if (membership && values.role !== undefined && membership.role !== role)
    return `${user.login} is ${membership.role} in ${organization.name} already: holdfast admin set-role ${user.login} ${role} --organization ${organization.name}`;
  if (!membership) await identity.setMembership(organization.id, user.id, role);
  say(`User ${user.login} is ${membership?.role ?? role} in ${organization.name}${membership ? ' already' : ''}.`);
  return null;
}

async function setRole(work: Work): Promise<string | null> {
  const { identity, people, positionals, say } = work;
  const role = toRole(positionals[1]);
  if (role === null) return noRole(positionals[1]);
  const target = await findTarget(work);
  if (typeof target === 'string') return target;
  const { organization, user } = target;
  const membership = await people.findMembership(organization.id, user.id);
  if (!membership) return notIn(user.login, organization.name);
  if (membership.role === role) {
    say(`User ${user.login} is ${role} in ${organization.name} already.`);
    return null;
  }
  const last = membership.role === 'admin' ? await refuseLastAdmin(work, user, organization.name) : null;
  if (last !== null) return last;
  await identity.setMembership(organization.id, user.id, role);
  say(`User ${user.login} is now ${role} in ${organization.name}; the role was ${membership.role}.`);
  if (membership.isListed) say('The bootstrap file sets the role again at the next start if it still lists the user.');
  return null;
}

async function removeMember(work: Work): Promise<string | null> {
  const { people, say } = work;
  const target = await findTarget(work);
  if (typeof target === 'string') return target;
  const { organization, user } = target;
  const membership = await people.findMembership(organization.id, user.id);
  if (!membership) return notIn(user.login, organization.name);
  const last = membership.role === 'admin' ? await refuseLastAdmin(work, user, organization.name) : null;
  if (last !== null) return last;
  await people.removeMembership(organization.id, user.id);
  say(`User ${user.login} is no longer in ${organization.name}; the role was ${membership.role}.`);
  if (membership.isListed) say('The bootstrap file adds the user again at the next start if it still lists it.');
  return null;
}

async function deactivateUser(work: Work): Promise<string | null> {
  const { people, positionals, say } = work;
  const user = await people.find(positionals[0] ?? '');
  if (!user) return noUser(positionals[0]);
  if (!user.isActive) {
    say(`User ${user.login} is deactivated already.`);
    return null;
  }
  const last =
    (await refuseLastAdmin(work, user, null)) ?? (user.siteAdmin ? await refuseLastSiteAdmin(work, user) : null);
  if (last !== null) return last;
  await people.setActive(user.id, false);
  say(`User ${user.login} is deactivated: its tokens are rejected.`);
  return null;
}

async function reactivateUser({ people, positionals, say }: Work): Promise<string | null> {
  const user = await people.find(positionals[0] ?? '');
  if (!user) return noUser(positionals[0]);
  if (!user.isActive) await people.setActive(user.id, true);
  say(`User ${user.login} is active${user.isActive ? ' already' : ' again, and so are its tokens'}.`);
  return null;
}

async function setSiteAdmin({ people, positionals, say }: Work): Promise<string | null> {
  const user = await people.find(positionals[0] ?? '');
  if (!user) return noUser(positionals[0]);
  if (!user.siteAdmin) await people.setSiteAdmin(user.id, true);
  say(`User ${user.login} is a site admin${user.siteAdmin ? ' already' : ''}.`);
  return null;
}

async function unsetSiteAdmin(work: Work): Promise<string | null> {
  const { people, positionals, say } = work;
  const user = await people.find(positionals[0] ?? '');
  if (!user) return noUser(positionals[0]);
  const last = user.siteAdmin ? await refuseLastSiteAdmin(work, user) : null;
  if (last !== null) return last;
  if (user.siteAdmin) await people.setSiteAdmin(user.id, false);
  say(`User ${user.login} is ${user.siteAdmin ? 'no longer' : 'not'} a site admin.`);
  return null;
}

async function createToken({ identity, people, positionals, say, values }: Work): Promise<string | null> {
  const user = await people.find(positionals[0] ?? '');
  if (!user) return noUser(positionals[0]);
  if (!user.isActive) return `user ${user.login} is deactivated: holdfast admin reactivate-user ${user.login}`;
  if (values.days !== undefined && !/^[1-9]\d{0,4}$/.test(values.days)) return '--days must be a whole number of days';
  const expiresAt = values.days === undefined ? null : new Date(Date.now() + Number(values.days) * 86_400_000);
  const { token, hash } = mintToken('hf-');
  await identity.insertToken({ userId: user.id, hash, description: values.description ?? '', expiresAt });
  say(token);
  return null;
}

async function revoke({ identity, people, positionals: [id], say, values }: Work): Promise<string | null> {
  if ((id === undefined) === (values.user === undefined)) return 'revoke needs the id of a token, or --user <login>';
  if (id !== undefined) {
    if (!/^[0-9a-f-]{36}$/.test(id) || !(await identity.revokeToken(id)))
      return `there is no valid token with the id ${JSON.stringify(id)}`;
    say('Revoked.');
    return null;
  }
  const user = await people.find(values.user ?? '');
  if (!user) return noUser(values.user);
  const count = await people.revokeTokens(user.id);
  say(`Revoked ${count} ${count === 1 ? 'token' : 'tokens'} of ${user.login}.`);
  return null;
}

async function list({ people, say, values }: Work): Promise<string | null> {
  const user = values.user ?? null;
  if (user !== null && !(await people.find(user))) return noUser(user);
  say('Organizations and members:');
  for (const { organization, login, role } of await people.listMembers(user))
    say(`  ${[organization ?? '(no organization)', login, role].filter((part) => part !== null).join('  ')}`);
  const marked = await people.listMarked(user);
  if (marked.length > 0) say('Site admins and deactivated users:');
  for (const { isActive, login, siteAdmin } of marked)
    say(`  ${login}${siteAdmin ? '  site admin' : ''}${isActive ? '' : '  deactivated'}`);
  say('Tokens (id, owner, created, expires, last used, description):');
  for (const token of await people.listTokens(user)) {
    const times = [token.createdAt, token.expiresAt, token.lastUsedAt].map((time) => time?.toISOString() ?? 'never');
    say(`  ${token.id}  ${token.login}  ${times.join('  ')}  ${token.description}`);
  }
  return null;
}

/** User and organization that a command names, or what is wrong. */
async function findTarget({ identity, people, positionals, values }: Work) {
  if (values.organization === undefined) return '--organization is missing';
  const organization = await identity.findOrganization(values.organization);
  if (!organization) return noOrganization(values.organization);
  const user = await people.find(positionals[0] ?? '');
  return user ? { organization, user } : noUser(positionals[0]);
}

/** A refusal where the user is the only active admin of the organization, or of any; null otherwise, and with --force. */
async function refuseLastAdmin({ people, values }: Work, user: PersonRow, organization: string | null) {
  if (values.force) return null;
  const names = (await people.listOnlyAdminOf(user.id)).filter(
    (name) => organization === null || name === organization,
  );
  if (names.length === 0) return null;
  return `${user.login} is the last admin of ${names.join(', ')}: nobody could delete stacks there. Appoint another one first, or use --force`;
}

async function refuseLastSiteAdmin({ people, values }: Work, user: PersonRow): Promise<string | null> {
  if (values.force || !(await people.isLastSiteAdmin(user.id))) return null;
  return `${user.login} is the last site admin. Appoint another one first, or use --force`;
}

function toRole(text: string | undefined): Role | null {
  return roles.find((role) => role === text) ?? null;
}

const noRole = (text: string | undefined): string => `there is no role ${JSON.stringify(text)}: ${roles.join(', ')}`;
const noUser = (login: string | undefined): string => `there is no user ${JSON.stringify(login)}`;
const noOrganization = (name: string): string => `there is no organization ${JSON.stringify(name)}`;
const notIn = (login: string, organization: string): string =>
  `${login} is not in ${organization}: holdfast admin add-member ${login} --organization ${organization}`;
