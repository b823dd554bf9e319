import type { Command } from 'commander';
import { isTeamName } from '../../shared/access/grants.ts';
import { jsonOption } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, questionAction, type Work } from './audited-action.ts';
import { findOrganization, findTeam, findUser, notIn, refused } from './people-rules.ts';

interface InOrganization {
  readonly organization: string;
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;

export function addTeamCommands(admin: Command, open: OpenSession): void {
  const team = admin.command('team').description('manage teams');
  team
    .command('create')
    .description('create a team')
    .argument('<team>')
    .requiredOption(...organizationOption)
    .option('--description <text>', 'purpose of the team')
    .action(changeAction(open, 'team.create', createTeam));
  team
    .command('delete')
    .description('delete a team with its grants and tokens')
    .argument('<team>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'team.delete', deleteTeam));
  team
    .command('add')
    .description('add a member of the organization to a team')
    .argument('<team>')
    .argument('<login>')
    .requiredOption(...organizationOption)
    .option('--admin', 'let the member manage the team')
    .action(changeAction(open, 'team.add', addToTeam));
  team
    .command('remove')
    .description('remove a member from a team')
    .argument('<team>')
    .argument('<login>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'team.remove', removeFromTeam));
  team
    .command('list')
    .description('list teams and their members')
    .requiredOption(...organizationOption)
    .option(...jsonOption)
    .action(questionAction(open, listTeams));
}

async function createTeam(
  { identity, say, teams, unchanged }: Work,
  name: string,
  given: InOrganization & { readonly description?: string },
): Promise<void> {
  if (!isTeamName(name)) throw refused(`${JSON.stringify(name)} is not a valid name of a team`);
  const organization = await findOrganization(identity, given.organization);
  const id = await teams.insert(organization.id, {
    name,
    displayName: name,
    description: given.description ?? '',
  });
  if (id === null) unchanged();
  say(id === null ? `Team ${name} already exists.` : `Created team ${name}.`);
}

async function deleteTeam(work: Work, name: string, given: InOrganization): Promise<void> {
  const { team } = await findTeam(work, given.organization, name);
  await work.teams.remove(team.id);
  work.say(`Deleted team ${name} with its grants and tokens.`);
}

async function addToTeam(
  work: Work,
  name: string,
  login: string,
  given: InOrganization & { readonly admin?: true },
): Promise<void> {
  const { organization, team } = await findTeam(work, given.organization, name);
  const user = await findUser(work.people, login);
  if (!(await work.people.findMembership(organization.id, user.id))) throw notIn(login, organization.name);
  // Adding a member again keeps its role in the team.
  const isAdmin = given.admin === true || (await work.teams.isAdmin(team.id, user.id));
  await work.teams.setMember(team.id, user.id, isAdmin);
  work.say(`User ${login} is in team ${name}${isAdmin ? ' and manages it' : ''}.`);
}

async function removeFromTeam(work: Work, name: string, login: string, given: InOrganization): Promise<void> {
  const { team } = await findTeam(work, given.organization, name);
  const user = await findUser(work.people, login);
  const removed = await work.teams.removeMember(team.id, user.id);
  if (!removed) work.unchanged();
  work.say(`User ${login} is ${removed ? 'no longer' : 'not'} in team ${name}.`);
}

async function listTeams({ identity, result, teams }: Work, given: InOrganization): Promise<void> {
  const organization = await findOrganization(identity, given.organization);
  const members = await teams.listMembers(organization.id);
  const found = (await teams.list(organization.id)).map(({ description, name }) => ({
    name,
    description,
    members: members.filter(({ team }) => team === name).map(({ isAdmin, login }) => ({ login, isAdmin })),
  }));
  const lines = found.flatMap((team) => [
    `${team.name}${team.description === '' ? '' : `  ${team.description}`}`,
    ...team.members.map(({ isAdmin, login }) => `  ${login}${isAdmin ? '  team admin' : ''}`),
  ]);
  result('admin team list', { teams: found }, lines);
}
