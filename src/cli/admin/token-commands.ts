import type { Command } from 'commander';
import { isTokenName } from '../../shared/access/grants.ts';
import type { TokenOwner } from '../../shared/identity/token-repository.ts';
import { parseScopes, type TokenScope, type WrittenScope, writeScope } from '../../shared/identity/token-scopes.ts';
import { mintToken } from '../../shared/platform/crypto/secret-token.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { jsonOption } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, questionAction, subjects, type Work } from './audited-action.ts';
import { findOrganization, findTeam, findUser, orRefused, refused, toRole } from './people-rules.ts';

interface InOrganization {
  readonly organization: string;
}

interface Limits {
  readonly days?: string;
  readonly description?: string;
  readonly scope?: string[];
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;
const daysOption = ['--days <days>', 'days until it expires (default: never)'] as const;
const scopeOption = [
  '--scope <scopes...>',
  'maximum permissions: permissions:project/stack, such as read,preview:web/* or write:acme/web/dev',
] as const;

export function addUserTokenCommand(user: Command, open: OpenSession): void {
  user
    .command('create-token')
    .description('create a token of a user, and print it')
    .argument('<login>')
    .option('--description <text>', 'purpose of the token')
    .option(...daysOption)
    .option(...scopeOption)
    .option(...jsonOption)
    .action(changeAction(open, 'token.create', createToken));
}

export function addTokenCommands(admin: Command, open: OpenSession): void {
  const setLimit = changeAction(open, 'token.limit', limitDays, subjects.organization);
  const previewLimit = questionAction(open, limitDays);
  admin
    .command('revoke')
    .description('revoke a token, or all tokens of a user: revoke --user <login>')
    .argument('[token-id]')
    .option('--user <login>', 'revoke all tokens of this user')
    .action(changeAction(open, 'token.revoke', revoke, subjects.tokenOrUser));
  const token = admin
    .command('token')
    .description('manage tokens of organizations and teams, and the lifetime of tokens');
  token
    .command('create')
    .description('create a token of an organization (default), a team or a service, and print it')
    .argument('<name>')
    .requiredOption(...organizationOption)
    .option('--team <team>', 'a token of this team')
    .option('--service', 'a service token, limited to its scopes and grants')
    .option('--provisioning', 'a token for the identity provider of the organization (SCIM), and for nothing else')
    .option('--role <role>', 'of a token of the organization (default: member)')
    .option('--description <text>', 'purpose of the token')
    .option(...daysOption)
    .option(...scopeOption)
    .option(...jsonOption)
    .action(changeAction(open, 'token.create', createOwnedToken));
  token
    .command('list')
    .description('list the tokens of an organization and its teams')
    .requiredOption(...organizationOption)
    .option(...jsonOption)
    .action(questionAction(open, listOwnedTokens));
  token
    .command('rotate')
    .description('replace the secret of a token and print the new one')
    .argument('<token-id>')
    .option('--overlap-hours <hours>', 'hours for which the previous secret stays valid (default: 24)')
    .option(...jsonOption)
    .action(changeAction(open, 'token.rotate', rotateToken, subjects.token));
  token
    .command('max-days')
    .description('limit the lifetime of the tokens of an organization and its members: days, or "none"')
    .argument('<days>')
    .requiredOption(...organizationOption)
    .option('--preview', 'only list the tokens that would end or expire earlier')
    .option(...jsonOption)
    .action((...given: Parameters<typeof setLimit>) => (given[1].preview ? previewLimit : setLimit)(...given));
}

async function createToken(
  { people, result, tokens }: Work,
  login: string,
  { days, description = '', scope }: Limits,
): Promise<void> {
  const user = await findUser(people, login);
  if (!user.isActive) throw refused(`user ${user.login} is deactivated: holdfast admin reactivate-user ${user.login}`);
  const { token, hash } = mintToken('hf-');
  const { id } = await tokens.insert({
    owner: { kind: 'personal', userId: user.id },
    hash,
    name: null,
    description,
    scopes: toScopes(scope),
    expiresAt: toExpiry(days),
    createdBy: null,
  });
  result('admin user create-token', { id, token }, [token]);
}

async function createOwnedToken(
  work: Work,
  name: string,
  given: InOrganization &
    Limits & { readonly team?: string; readonly service?: true; readonly provisioning?: true; readonly role?: string },
): Promise<void> {
  if (!isTokenName(name)) throw refused(`${JSON.stringify(name)} is not a valid name of a token`);
  const kinds = [given.team, given.service, given.provisioning, given.role].filter((each) => each !== undefined);
  if (kinds.length > 1) throw refused('only one of --team, --service, --provisioning and --role can be given');
  if (given.provisioning && given.scope) throw refused('a token for provisioning has no scopes');
  const organization = await findOrganization(work.identity, given.organization);
  const ofOrganization = { organizationId: organization.id };
  const owner: TokenOwner =
    given.team !== undefined
      ? { kind: 'team', ...ofOrganization, teamId: (await findTeam(work, organization.name, given.team)).team.id }
      : given.service || given.provisioning
        ? { kind: 'service', ...ofOrganization, isProvisioning: given.provisioning === true }
        : { kind: 'organization', ...ofOrganization, role: toRole(given.role ?? 'member') };
  const { token, hash } = mintToken('hf-');
  const scopes = toScopes(given.scope) ?? (owner.kind === 'service' ? [] : null);
  const { days, description = '' } = given;
  const expiresAt = toExpiry(days);
  try {
    const { id } = await work.tokens.insert({ owner, hash, name, description, scopes, expiresAt, createdBy: null });
    work.result('admin token create', { id, token }, [token]);
  } catch (error) {
    if (!violatedConstraint(error)?.endsWith('_name')) throw error;
    throw refused(`there is, or was, a token named ${JSON.stringify(name)}; token names cannot be reused`);
  }
}

async function listOwnedTokens({ identity, result, teams, tokens }: Work, given: InOrganization): Promise<void> {
  const organization = await findOrganization(identity, given.organization);
  const rows = [...(await tokens.list({ organizationId: organization.id }))];
  for (const { id } of await teams.list(organization.id)) rows.push(...(await tokens.list({ teamId: id })));
  const found = rows.map((row) => {
    const { createdAt, expiresAt, id, isProvisioning, kind, lastUsedAt, name, owner, role } = row;
    const scopes = row.scopes?.map(writeScope) ?? null;
    return { id, kind, name, owner, role, isProvisioning, scopes, createdAt, expiresAt, lastUsedAt };
  });
  const lines = found.map((row) => {
    const times = [row.createdAt, row.expiresAt, row.lastUsedAt].map((time) => time?.toISOString() ?? 'never');
    const scopes = row.scopes?.map((scope) => `${scope.permissions.join(',')}:${scope.stacks}`);
    if (row.isProvisioning) scopes?.unshift('provisioning');
    return `  ${[row.id, row.kind, row.name, row.owner ?? row.role ?? '-', ...times, scopes?.join(' ') ?? 'all'].join('  ')}`;
  });
  const head = 'Tokens (id, kind, name, owner or role, created, expires, last used, scopes):';
  result('admin token list', { tokens: found }, [head, ...lines]);
}

async function rotateToken(
  { result, tokens }: Work,
  id: string,
  { overlapHours = '24' }: { readonly overlapHours?: string },
): Promise<void> {
  if (!/^\d{1,3}$/.test(overlapHours)) throw refused('--overlap-hours must be a whole number of hours, at most 999');
  const { token, hash } = mintToken('hf-');
  const overlapSeconds = Number(overlapHours) * 3600;
  const isId = /^[0-9a-f-]{36}$/.test(id);
  const rotated = isId ? await tokens.rotate(id, hash, { ownerFilter: null, overlapSeconds, by: null }) : null;
  if (!rotated && isId && (await tokens.findHolder(id, null)) === 'run')
    throw refused('the token was issued to a CI run and cannot be rotated: it ends as its policy says');
  if (!rotated)
    throw refused(
      `there is no valid token with the id ${JSON.stringify(id)}, or the bootstrap file lists it: change it there`,
    );
  result('admin token rotate', { id, token }, [token]);
}

async function limitDays(
  { identity, result, tokens }: Work,
  days: string,
  { organization: name, preview }: InOrganization & { readonly preview?: true },
): Promise<void> {
  const organization = await findOrganization(identity, name);
  if (days === 'none') {
    if (!preview) await tokens.setMaxSeconds(organization.id, null);
    const removed = `${preview ? 'Would remove' : 'Removed'} the limit. Tokens that were shortened keep their expiry.`;
    result('admin token max-days', { isPreview: preview === true, days: null, tokens: [] }, [removed]);
    return;
  }
  const seconds = toDays(days) * 86_400;
  const affected = await tokens.listAffected(organization.id, seconds);
  if (!preview) await tokens.setMaxSeconds(organization.id, seconds);
  const found = affected.map(({ description, ends, id, kind, name: ownName, newExpiresAt, owner }) => ({
    ...{ id, kind, owner: owner ?? organization.name, name: ownName, description },
    ...{ expiresAt: newExpiresAt, ends },
  }));
  result('admin token max-days', { isPreview: preview === true, days: seconds / 86_400, tokens: found }, [
    `Tokens that ${preview ? 'would end or expire' : 'have ended or expire'} earlier (id, kind, owner, name, when):`,
    ...found.map((each) => {
      const when = each.ends ? 'at once' : each.expiresAt.toISOString();
      return `  ${[each.id, each.kind, each.owner, each.name ?? each.description, when].join('  ')}`;
    }),
  ]);
}

function toScopes(scopes: readonly string[] | undefined): TokenScope[] | null {
  const written = writtenScopes(scopes);
  return written && orRefused(() => parseScopes(written));
}

/** Reads the --scope option. Throws CommandRefusedError. */
export function writtenScopes(scopes: readonly string[] | undefined): WrittenScope[] | null {
  if (scopes === undefined) return null;
  return scopes.map((scope) => {
    const [permissions = '', stacks = '', ...rest] = scope.split(':');
    if (rest.length > 0 || stacks === '')
      throw refused(`${JSON.stringify(scope)} is not of the form permissions:project/stack`);
    return { permissions: permissions.split(','), stacks };
  });
}

function toExpiry(days: string | undefined): Date | null {
  return days === undefined ? null : new Date(Date.now() + toDays(days) * 86_400_000);
}

function toDays(days: string): number {
  if (!/^[1-9]\d{0,4}$/.test(days)) throw refused('--days must be a whole number of days');
  return Number(days);
}

async function revoke(
  { identity, people, say }: Work,
  id: string | undefined,
  { user: login }: { readonly user?: string },
): Promise<void> {
  if (id !== undefined && login === undefined) {
    if (!/^[0-9a-f-]{36}$/.test(id) || !(await identity.revokeToken(id)))
      throw refused(`there is no valid token with the id ${JSON.stringify(id)}`);
    say('Revoked.');
  } else if (id === undefined && login !== undefined) {
    const user = await findUser(people, login);
    const count = await people.revokeTokens(user.id);
    say(`Revoked ${count} ${count === 1 ? 'token' : 'tokens'} of ${user.login}.`);
  } else {
    throw refused('revoke needs the id of a token, or --user <login>');
  }
}
