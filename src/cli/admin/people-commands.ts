import type { Command } from 'commander';
import { roles } from '../../shared/access/roles.ts';
import { isLogin, isOrganizationName } from '../../shared/stacks/names.ts';
import { jsonOption } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, questionAction, subjects, type Work } from './audited-action.ts';
import {
  findOrganization,
  findUser,
  notIn,
  refused,
  refuseLastAdmin,
  refuseLastSiteAdmin,
  toRole,
} from './people-rules.ts';

interface InOrganization {
  readonly organization: string;
}

interface WithRole {
  readonly role?: string;
}

interface Forced {
  readonly force?: true;
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;
const roleOption = ['--role <role>', `${roles.join(', ')} (default: member)`] as const;
const forceOption = ['--force', 'even for the last admin of an organization or the last site admin'] as const;

export function addPeopleCommands(admin: Command, open: OpenSession): void {
  admin
    .command('create-organization')
    .description('create an organization if it does not exist')
    .argument('<organization>')
    .action(changeAction(open, 'organization.create', createOrganization, subjects.newOrganization));
  admin
    .command('create-user')
    .description('create a user; an existing user is not changed')
    .argument('<login>')
    .option('--organization <organization>', 'make the user a member of this organization')
    .option(...roleOption)
    .option('--site-admin', 'make the user a site admin')
    .action(changeAction(open, 'user.create', createUser));
  admin
    .command('add-member')
    .description('make a user a member of an organization')
    .argument('<login>')
    .requiredOption(...organizationOption)
    .option(...roleOption)
    .action(changeAction(open, 'member.add', addMember));
  admin
    .command('set-role')
    .description('change the role of a member')
    .argument('<login>')
    .argument('<role>', roles.join(', '))
    .requiredOption(...organizationOption)
    .option(...forceOption)
    .action(changeAction(open, 'member.role', setRole));
  admin
    .command('remove-member')
    .description('remove a user from an organization')
    .argument('<login>')
    .requiredOption(...organizationOption)
    .option(...forceOption)
    .action(changeAction(open, 'member.remove', removeMember));
  admin
    .command('deactivate-user')
    .description('reject all tokens of a user, and new ones, until the user is reactivated')
    .argument('<login>')
    .option(...forceOption)
    .action(changeAction(open, 'user.deactivate', deactivateUser));
  admin
    .command('reactivate-user')
    .description('accept the tokens of a deactivated user again')
    .argument('<login>')
    .action(changeAction(open, 'user.reactivate', reactivateUser));
  admin
    .command('set-site-admin')
    .description('make a user a site admin')
    .argument('<login>')
    .action(changeAction(open, 'user.site-admin', setSiteAdmin));
  admin
    .command('unset-site-admin')
    .description('make a site admin an ordinary user again')
    .argument('<login>')
    .option(...forceOption)
    .action(changeAction(open, 'user.site-admin', unsetSiteAdmin));
  admin
    .command('list')
    .description('list organizations with members, site admins, deactivated users, and tokens')
    .option('--user <login>', 'only for this user')
    .option(...jsonOption)
    .action(questionAction(open, list));
}

async function createOrganization({ identity, say }: Work, name: string): Promise<void> {
  if (!isOrganizationName(name)) throw refused(`${JSON.stringify(name)} is not a valid organization name`);
  const { created } = await identity.ensureOrganization(name);
  say(created ? `Created organization ${name}.` : `Organization ${name} already exists.`);
}

async function createUser(
  { identity, people, say }: Work,
  login: string,
  given: Partial<InOrganization> & WithRole & { readonly siteAdmin?: true },
): Promise<void> {
  const { organization: name, siteAdmin } = given;
  if (!isLogin(login)) throw refused(`${JSON.stringify(login)} is not a valid login`);
  if (given.role !== undefined && name === undefined) throw refused('--role needs --organization');
  const role = toRole(given.role ?? 'member');
  const organization = name === undefined ? null : await findOrganization(identity, name);
  const found = await people.find(login);
  if (!found) {
    const { id, login: taken } = await identity.ensureUser(login);
    if (taken !== login) throw refused(`user ${taken} already exists; logins differ in more than case`);
    if (siteAdmin) await people.setSiteAdmin(id, true);
    if (organization) await identity.setMembership(organization.id, id, role);
    const what = [siteAdmin ? 'site admin' : '', organization ? `${role} in ${organization.name}` : ''];
    say(`Created user ${[login, ...what.filter((each) => each !== '')].join(', ')}.`);
    return;
  }
  const differences: string[] = [];
  if (!found.isActive) differences.push(`is deactivated: holdfast admin reactivate-user ${login}`);
  if (siteAdmin && !found.siteAdmin) differences.push(`is not a site admin: holdfast admin set-site-admin ${login}`);
  if (organization) {
    const membership = await people.findMembership(organization.id, found.id);
    const suffix = `--organization ${organization.name}`;
    if (!membership)
      differences.push(`is not in ${organization.name}: holdfast admin add-member ${login} ${suffix} --role ${role}`);
    else if (given.role !== undefined && membership.role !== role)
      differences.push(
        `is ${membership.role} in ${organization.name}: holdfast admin set-role ${login} ${role} ${suffix}`,
      );
  }
  if (differences.length > 0)
    throw refused([`user ${login} already exists, and nothing was changed. The user`, ...differences].join('\n  '));
  say(`User ${login} exists.`);
}

async function addMember(work: Work, login: string, given: InOrganization & WithRole): Promise<void> {
  const { identity, people, say } = work;
  const role = toRole(given.role ?? 'member');
  const organization = await findOrganization(identity, given.organization);
  const user = await findUser(people, login);
  const membership = await people.findMembership(organization.id, user.id);
  if (membership && given.role !== undefined && membership.role !== role)
    throw refused(
      `${user.login} is ${membership.role} in ${organization.name} already: holdfast admin set-role ${user.login} ${role} --organization ${organization.name}`,
    );
  if (!membership) await identity.setMembership(organization.id, user.id, role);
  say(`User ${user.login} is ${membership?.role ?? role} in ${organization.name}${membership ? ' already' : ''}.`);
}

async function setRole(
  { identity, people, say }: Work,
  login: string,
  roleName: string,
  given: InOrganization & Forced,
): Promise<void> {
  const role = toRole(roleName);
  const organization = await findOrganization(identity, given.organization);
  const user = await findUser(people, login);
  const membership = await people.findMembership(organization.id, user.id);
  if (!membership) throw notIn(user.login, organization.name);
  if (membership.role === role) {
    say(`User ${user.login} is ${role} in ${organization.name} already.`);
    return;
  }
  if (membership.role === 'admin' && !given.force) await refuseLastAdmin(people, user, organization.name);
  await identity.setMembership(organization.id, user.id, role);
  say(`User ${user.login} is now ${role} in ${organization.name}; the role was ${membership.role}.`);
  if (membership.isListed) say('The bootstrap file sets the role again at the next start if it still lists the user.');
}

async function removeMember(
  { identity, people, say }: Work,
  login: string,
  given: InOrganization & Forced,
): Promise<void> {
  const organization = await findOrganization(identity, given.organization);
  const user = await findUser(people, login);
  const membership = await people.findMembership(organization.id, user.id);
  if (!membership) throw notIn(user.login, organization.name);
  if (membership.role === 'admin' && !given.force) await refuseLastAdmin(people, user, organization.name);
  await people.removeMembership(organization.id, user.id);
  say(`User ${user.login} is no longer in ${organization.name}; the role was ${membership.role}.`);
  if (membership.isListed) say('The bootstrap file adds the user again at the next start if it still lists it.');
}

async function deactivateUser({ people, say }: Work, login: string, { force }: Forced): Promise<void> {
  const user = await findUser(people, login);
  if (!user.isActive) {
    // After this, an identity provider that deactivated the user cannot reactivate them.
    await people.setActive(user.id, false);
    say(`User ${user.login} is deactivated already.`);
    return;
  }
  if (!force) await refuseLastAdmin(people, user, null);
  if (!force) await refuseLastSiteAdmin(people, user);
  await people.setActive(user.id, false);
  say(`User ${user.login} is deactivated: its tokens are rejected.`);
}

async function reactivateUser({ people, say }: Work, login: string): Promise<void> {
  const user = await findUser(people, login);
  if (!user.isActive) await people.setActive(user.id, true);
  say(`User ${user.login} is active${user.isActive ? ' already' : ' again, and so are its tokens'}.`);
}

async function setSiteAdmin({ people, say }: Work, login: string): Promise<void> {
  const user = await findUser(people, login);
  if (!user.siteAdmin) await people.setSiteAdmin(user.id, true);
  say(`User ${user.login} is a site admin${user.siteAdmin ? ' already' : ''}.`);
}

async function unsetSiteAdmin({ people, say }: Work, login: string, { force }: Forced): Promise<void> {
  const user = await findUser(people, login);
  if (!force) await refuseLastSiteAdmin(people, user);
  if (user.siteAdmin) await people.setSiteAdmin(user.id, false);
  say(`User ${user.login} is ${user.siteAdmin ? 'no longer' : 'not'} a site admin.`);
}

async function list({ people, result }: Work, given: { readonly user?: string }): Promise<void> {
  const user = given.user ?? null;
  if (user !== null) await findUser(people, user);
  const members = await people.listMembers(user);
  const marked = (await people.listMarked(user)).map(({ isActive, login, siteAdmin }) => ({
    login,
    siteAdmin,
    isActive,
  }));
  const tokens = await people.listTokens(user);
  result('admin list', { members, people: marked, tokens }, [
    'Organizations and members:',
    ...members.map(
      ({ organization, login, role }) =>
        `  ${[organization ?? '(no organization)', login, role].filter((part) => part !== null).join('  ')}`,
    ),
    ...(marked.length > 0 ? ['Site admins and deactivated users:'] : []),
    ...marked.map(
      ({ isActive, login, siteAdmin }) =>
        `  ${login}${siteAdmin ? '  site admin' : ''}${isActive ? '' : '  deactivated'}`,
    ),
    'Tokens (id, owner, created, expires, last used, description):',
    ...tokens.map(({ createdAt, description, expiresAt, id, lastUsedAt, login }) => {
      const times = [createdAt, expiresAt, lastUsedAt].map((time) => time?.toISOString() ?? 'never');
      return `  ${id}  ${login}  ${times.join('  ')}  ${description}`;
    }),
  ]);
}
