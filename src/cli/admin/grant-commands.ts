import { Argument, type Command } from 'commander';
import { withDecryptByRole } from '../../shared/access/decrypt-by-role.ts';
import type { GrantSubject, NewGrant } from '../../shared/access/grant-repository.ts';
import { formatStackPattern, parseDefaults, parsePermissions, parseStackPattern } from '../../shared/access/grants.ts';
import { allowedBy, deniedBy, grantable, namesOf, noPermissions } from '../../shared/access/permissions.ts';
import { jsonOption } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, questionAction, subjects, type Work } from './audited-action.ts';
import { findOrganization, findTeam, findUser, notIn, orRefused, refused } from './people-rules.ts';

interface InOrganization {
  readonly organization: string;
}

interface GrantOptions extends InOrganization {
  readonly stacks?: string;
  readonly tag?: string;
  readonly user?: string;
  readonly team?: string;
  readonly token?: string;
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;

export function addGrantCommands(admin: Command, open: OpenSession): void {
  const grant = admin.command('grant').description('manage permissions of users, teams and tokens on stacks');
  for (const effect of ['allow', 'deny'] as const) {
    grant
      .command(effect)
      .description(
        `${effect} permissions: ${grantable.join(', ')}${effect === 'deny' ? '; overrides everything that allows' : ''}`,
      )
      .argument('<permissions...>')
      .requiredOption(...organizationOption)
      .option('--stacks <pattern>', 'project/stack, where * matches any characters (default: */*)')
      .option('--tag <tag>', 'only stacks with this tag: name, or name=value')
      .option('--user <login>', 'to a member of the organization')
      .option('--team <team>', 'to a team')
      .option('--token <id>', 'to a token')
      .action(
        changeAction(
          open,
          'grant.add',
          (work: Work, names: string[], given: GrantOptions) => addGrant(work, effect, names, given),
          subjects.grantedStacks,
        ),
      );
  }
  grant
    .command('remove')
    .description('remove a grant')
    .argument('<grant-id>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'grant.remove', removeGrant));
  grant
    .command('list')
    .description('list the grants of an organization and what its roles give')
    .requiredOption(...organizationOption)
    .option(...jsonOption)
    .action(questionAction(open, listGrants));
  grant
    .command('defaults')
    .description('limit the permissions of roles below admin: permissions, "none", or "roles" for no limit')
    .argument('<permissions...>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'grant.defaults', setDefaults, subjects.organization));
  grant
    .command('decrypt-by-role')
    .description('let viewers and members decrypt secrets by role, or only by grant; admins can always decrypt')
    .addArgument(new Argument('<state>').choices(['on', 'off']))
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'grant.defaults', setDecryptByRole, subjects.organization));
}

async function addGrant(
  work: Work,
  effect: 'allow' | 'deny',
  names: readonly string[],
  given: GrantOptions,
): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const permissions = orRefused(() => parsePermissions(names));
  const { project, stack } = orRefused(() => parseStackPattern(given.stacks ?? '*/*'));
  const [tagName, ...tagValue] = given.tag?.split('=') ?? [];
  if (tagName === '') throw refused('--tag needs a name, or name=value');
  const grant: NewGrant = {
    organizationId: organization.id,
    effect,
    permissions: effect === 'allow' ? allowedBy(permissions) : deniedBy(permissions),
    projectPattern: project,
    stackPattern: stack,
    tagName: tagName ?? null,
    tagValue: tagValue.length > 0 ? tagValue.join('=') : null,
    subject: await findSubject(work, organization, given),
    createdBy: null,
  };
  const same = await work.grants.findSame(grant);
  if (same !== null) {
    work.unchanged();
    return work.say(`There is this grant already: ${same}.`);
  }
  work.say(`Added grant ${await work.grants.insert(grant)}.`);
}

async function findSubject(
  work: Work,
  organization: { readonly id: string; readonly name: string },
  { user: login, team: teamName, token: tokenId }: GrantOptions,
): Promise<GrantSubject> {
  if ([login, teamName, tokenId].filter((each) => each !== undefined).length !== 1)
    throw refused('a grant needs one of --user, --team and --token');
  if (login !== undefined) {
    const user = await findUser(work.people, login);
    if (!(await work.people.findMembership(organization.id, user.id))) throw notIn(login, organization.name);
    return { userId: user.id };
  }
  if (teamName !== undefined) return { teamId: (await findTeam(work, organization.name, teamName)).team.id };
  const id = tokenId ?? '';
  if (!/^[0-9a-f-]{36}$/.test(id) || !(await work.identity.isTokenOf(id, organization.id)))
    throw refused(`there is no valid token with the id ${JSON.stringify(id)} in ${organization.name}`);
  return { tokenId: id };
}

async function removeGrant(work: Work, id: string, given: InOrganization): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  if (!/^[0-9a-f-]{36}$/.test(id) || !(await work.grants.remove(organization.id, id)))
    throw refused(`there is no grant ${JSON.stringify(id)} in ${organization.name}`);
  work.say('Removed.');
}

async function setDefaults(work: Work, names: readonly string[], given: InOrganization): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const [only] = names.length === 1 ? names : [];
  const permissions = only === 'roles' ? null : only === 'none' ? noPermissions : orRefused(() => parseDefaults(names));
  await work.grants.setDefaults(organization.id, permissions);
  work.say(`Roles below admin give ${describeDefaults(permissions)}.`);
}

async function setDecryptByRole(work: Work, state: string, given: InOrganization): Promise<void> {
  const organization = await findOrganization(work.identity, given.organization);
  const { defaultPermissions } = await work.grants.lockDefaults(organization.id);
  const permissions = withDecryptByRole(defaultPermissions, state === 'on');
  if (permissions !== defaultPermissions) await work.grants.setDefaults(organization.id, permissions);
  work.say(`Roles below admin give ${describeDefaults(permissions)}.`);
}

async function listGrants({ grants, identity, result }: Work, given: InOrganization): Promise<void> {
  const organization = await findOrganization(identity, given.organization);
  const { defaultPermissions } = await grants.findDefaults(organization.id);
  const found = (await grants.list(organization.id)).map(({ effect, id, team, token, user, ...each }) => ({
    ...{ id, effect, permissions: namesOf(each.permissions) },
    stacks: formatStackPattern({ project: each.projectPattern, stack: each.stackPattern }),
    tag: each.tagName === null ? null : { name: each.tagName, value: each.tagValue },
    ...{ user, team, token, role: each.roleName ?? each.builtInRole },
  }));
  const defaults = defaultPermissions === null ? null : namesOf(defaultPermissions);
  result('admin grant list', { defaults, grants: found }, [
    `Roles below admin give ${describeDefaults(defaultPermissions)}.`,
    ...found.map(({ effect, id, permissions, role, stacks, tag, team, token, user }) => {
      const subject = user !== null ? `user ${user}` : team !== null ? `team ${team}` : `token ${token}`;
      const tagged = tag === null ? '' : `  tag ${tag.name}${tag.value === null ? '' : `=${tag.value}`}`;
      const given = role === null ? '' : `  role ${role}`;
      return `${id}  ${effect} ${permissions.join(',')}  ${stacks}${tagged}  ${subject}${given}`;
    }),
  ]);
}

function describeDefaults(permissions: number | null): string {
  if (permissions === null) return 'all permissions of the role';
  return permissions === noPermissions ? 'nothing: only grants apply' : `at most ${namesOf(permissions).join(', ')}`;
}
