import { readFileSync } from 'node:fs';
import type { Command } from 'commander';
import { audienceOf, checkIssuer, parseKeySet, parseReplay } from '../../shared/identity/trust/issuer.ts';
import type { IssuerRow } from '../../shared/identity/trust/issuer-repository.ts';
import { replacePolicies } from '../../shared/identity/trust/replace-policies.ts';
import {
  checkLife,
  parsePolicies,
  type WrittenPolicy,
  writePolicy,
} from '../../shared/identity/trust/trust-definitions.ts';
import type { TrustPolicy } from '../../shared/identity/trust/trust-policy.ts';
import { violatedConstraint } from '../../shared/platform/db/sqlstate.ts';
import { jsonOption } from '../output/outputs.ts';
import type { OpenSession } from './admin-session.ts';
import { changeAction, questionAction, type Work } from './audited-action.ts';
import { findOrganization, orRefused, refused } from './people-rules.ts';
import { writtenScopes } from './token-commands.ts';

interface InOrganization {
  readonly organization: string;
}

interface AddOptions extends InOrganization {
  readonly url: string;
  readonly audience?: string;
  readonly replay?: string;
  readonly maxSeconds?: string;
  readonly keys?: string;
}

interface PolicyOptions extends InOrganization {
  readonly rule?: string[];
  readonly team?: string;
  readonly user?: string;
  readonly service?: true;
  readonly type?: string;
  readonly admin?: true;
  readonly scope?: string[];
  readonly maxSeconds?: string;
}

const organizationOption = ['--organization <organization>', 'the organization (required)'] as const;
const ruleOption = [
  '--rule <rules...>',
  'claim=pattern, where * matches any characters, such as sub=repo:acme/web:*; all must match',
] as const;

export function addIssuerCommands(admin: Command, open: OpenSession): void {
  const issuer = admin.command('issuer').description('manage issuers of id tokens (CI systems) and their policies');
  issuer
    .command('add')
    .description('trust an issuer; its tokens cannot be exchanged until a policy allows it')
    .argument('<name>')
    .requiredOption(...organizationOption)
    .requiredOption('--url <url>', 'the `iss` of its tokens, such as https://token.actions.githubusercontent.com')
    .option('--audience <audience>', 'the `aud` of its tokens (default: urn:pulumi:org:<organization>)')
    .option(
      '--replay <replay>',
      'whether an id token can be exchanged "once" (default), or any number of times "within-life"',
    )
    .option('--max-seconds <seconds>', 'maximum lifetime of the issued tokens (default: 7200)')
    .option('--keys <file>', 'JSON file with its public keys (JWKS), if they cannot be fetched')
    .action(changeAction(open, 'issuer.add', addIssuer));
  issuer
    .command('remove')
    .description('end the trust in an issuer, and all tokens issued for it')
    .argument('<name>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'issuer.remove', removeIssuer));
  issuer
    .command('list')
    .description('list the issuers that an organization trusts, with their policies')
    .requiredOption(...organizationOption)
    .option(...jsonOption)
    .action(questionAction(open, listIssuers));
  issuer
    .command('allow')
    .description('add a policy that gives a token of the organization (default), a team, a user or a service')
    .argument('<issuer>')
    .requiredOption(...organizationOption)
    .requiredOption(...ruleOption)
    .option('--team <team>', 'a token of this team')
    .option('--user <login>', 'a token of this user, for this organization only')
    .option('--service', 'a service token, limited to --scope')
    .option('--admin', 'a token of the organization may have the role admin, if requested')
    .option('--scope <scopes...>', 'maximum permissions: permissions:project/stack, such as write:web/*')
    .option('--max-seconds <seconds>', 'maximum lifetime of the token')
    .action(
      changeAction(open, 'issuer.policies', (work: Work, name: string, given: PolicyOptions) =>
        addPolicy(work, 'allow', name, given),
      ),
    );
  issuer
    .command('deny')
    .description(
      'add a policy that denies tokens, of any type by default; overrides policies that allow, and ends matching tokens',
    )
    .argument('<issuer>')
    .requiredOption(...organizationOption)
    .option(...ruleOption)
    .option('--type <type>', 'only tokens of this type: organization, team or personal (default: any)')
    .option('--team <team>', 'only tokens of this team')
    .option('--user <login>', 'only tokens of this user')
    .action(
      changeAction(open, 'issuer.policies', (work: Work, name: string, given: PolicyOptions) =>
        addPolicy(work, 'deny', name, given),
      ),
    );
  issuer
    .command('drop')
    .description('remove a policy, and the tokens it has issued')
    .argument('<issuer>')
    .argument('<policy-id>')
    .requiredOption(...organizationOption)
    .action(changeAction(open, 'issuer.policies', dropPolicy));
}

async function addIssuer({ identity, issuers, say }: Work, name: string, given: AddOptions): Promise<void> {
  const { id: organizationId } = await findOrganization(identity, given.organization);
  const { audience = audienceOf(given.organization), url } = given;
  orRefused(() => checkIssuer({ name, url, audience }));
  const replay = orRefused(() => parseReplay(given.replay ?? 'once'));
  const maxSeconds = given.maxSeconds === undefined ? null : toSeconds(given.maxSeconds);
  const jwks = given.keys === undefined ? null : readKeys(given.keys);
  try {
    await issuers.insert({ organizationId, name, url, audience, replay, maxSeconds, jwks, createdBy: null });
  } catch (error) {
    const constraint = violatedConstraint(error);
    if (constraint !== 'trusted_issuers_name_key' && constraint !== 'trusted_issuers_url_key') throw error;
    throw refused(`${given.organization} has an issuer with this ${constraint.includes('_name_') ? 'name' : 'URL'}`);
  }
  say(`Added ${name}. Add policies: holdfast admin issuer allow ${name} --organization ${given.organization} --rule …`);
}

async function removeIssuer(work: Work, name: string, given: InOrganization): Promise<void> {
  const issuer = await lockIssuer(work, name, given);
  await work.issuers.remove(issuer.id);
  work.say('Removed.');
}

async function listIssuers({ identity, issuers, result }: Work, given: InOrganization): Promise<void> {
  const organization = await findOrganization(identity, given.organization);
  const found = [];
  for (const { audience, id, jwks, maxSeconds, name, replay, url } of await issuers.list(organization.id)) {
    const policies = (await issuers.listPolicies(id)).map((policy) => ({ id: policy.id, ...writePolicy(policy) }));
    found.push({ name, url, audience, replay, maxSeconds, hasGivenKeys: jwks !== null, policies });
  }
  const lines = found.flatMap(({ audience, hasGivenKeys, maxSeconds, name, policies, replay, url }) => {
    const life = maxSeconds === null ? '' : `  ${maxSeconds} s`;
    return [
      `${name}  ${url}  ${audience}  ${replay}${life}${hasGivenKeys ? '  given keys' : ''}`,
      ...policies.map(
        ({ decision, id, rules, tokenType, ...more }) =>
          `  ${id}  ${decision} ${tokenType}  ${JSON.stringify(rules)}  ${JSON.stringify(more)}`,
      ),
    ];
  });
  result('admin issuer list', { issuers: found }, lines);
}

async function addPolicy(work: Work, decision: 'allow' | 'deny', name: string, given: PolicyOptions): Promise<void> {
  const { admin, maxSeconds, rule = [], scope, service, team, type, user } = given;
  if ([team, user, service].filter((each) => each !== undefined).length > 1)
    throw refused('only one of --team, --user and --service can be given');
  const named = team !== undefined ? 'team' : user !== undefined ? 'personal' : service ? 'service' : null;
  if (type !== undefined && named !== null && named !== type)
    throw refused(`--type ${type} cannot be combined with --team or --user`);
  const rules: Record<string, string[]> = {};
  for (const each of rule) {
    const at = each.indexOf('=');
    if (at < 1) throw refused(`${JSON.stringify(each)} is not of the form claim=pattern`);
    rules[each.slice(0, at)] = [...(rules[each.slice(0, at)] ?? []), each.slice(at + 1)];
  }
  const written: WrittenPolicy = {
    decision,
    tokenType: named ?? type ?? (decision === 'deny' ? 'any' : 'organization'),
    teamName: team ?? null,
    userLogin: user ?? null,
    authorizedPermissions: admin ? ['admin'] : [],
    rules,
    scopes: writtenScopes(scope),
    maxExpiration: maxSeconds === undefined ? null : toSeconds(maxSeconds),
  };
  const [policy] = orRefused(() => parsePolicies([written])) as [TrustPolicy];
  await change(work, name, given, (policies) => [...policies, policy]);
}

async function dropPolicy(work: Work, name: string, id: string, given: InOrganization): Promise<void> {
  await change(work, name, given, (policies) => {
    const left = policies.filter((policy) => policy.id !== id);
    if (left.length === policies.length) throw refused(`${name} has no policy ${JSON.stringify(id)}`);
    return left;
  });
}

async function change(
  work: Work,
  name: string,
  given: InOrganization,
  changed: (policies: readonly (TrustPolicy & { readonly id: string })[]) => readonly TrustPolicy[],
): Promise<void> {
  const issuer = await lockIssuer(work, name, given);
  const before = await work.issuers.listPolicies(issuer.id);
  const wanted = changed(before).map(withoutIds);
  const after = await orRefusedAsync(replacePolicies(work.tx, issuer, wanted, { userId: null, actsFor: 'anyone' }));
  const added = after.filter(({ id }) => !before.some((policy) => policy.id === id));
  work.say(added.length > 0 ? `Added policy ${added.map(({ id }) => id).join(', ')}.` : 'Removed.');
}

/** The whole issuer, compared with the existing one. */
function withoutIds(policy: TrustPolicy): TrustPolicy {
  const { decision, isAdmin, maxSeconds, owner, rules, scopes, tokenKind } = policy;
  return { decision, isAdmin, maxSeconds, owner, rules, scopes, tokenKind };
}

async function lockIssuer({ identity, issuers }: Work, name: string, given: InOrganization): Promise<IssuerRow> {
  const organization = await findOrganization(identity, given.organization);
  const issuer = await issuers.findByName(organization.id, name);
  if (!issuer || !(await issuers.lock(issuer.id)))
    throw refused(`${given.organization} has no issuer ${JSON.stringify(name)}`);
  return issuer;
}

async function orRefusedAsync<T>(work: Promise<T>): Promise<T> {
  const settled = await Promise.allSettled([work]);
  return orRefused(() => {
    if (settled[0].status === 'rejected') throw settled[0].reason;
    return settled[0].value;
  });
}

function readKeys(file: string): string {
  let given: unknown;
  try {
    given = JSON.parse(readFileSync(file, 'utf8'));
  } catch (error) {
    throw refused(`${file} cannot be read as JSON: ${(error as Error).message}`);
  }
  return orRefused(() => parseKeySet(given));
}

function toSeconds(text: string): number {
  if (!/^[1-9]\d{0,5}$/.test(text)) throw refused('--max-seconds must be a whole number of seconds');
  orRefused(() => checkLife(Number(text)));
  return Number(text);
}
