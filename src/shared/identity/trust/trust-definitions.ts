import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { tokenKinds } from '../token-kinds.ts';
import { parseScopes, type WrittenScope, writeScope } from '../token-scopes.ts';
import type { TrustKind, TrustPolicy } from './trust-policy.ts';

/** The form in requests and commands. */
export interface WrittenPolicy {
  readonly decision: string;
  /** A policy that denies may omit it or name `any`, for every kind of token. */
  readonly tokenType?: string | null;
  readonly teamName?: string | null;
  readonly userLogin?: string | null;
  readonly runnerID?: string | null;
  readonly roleID?: string | null;
  readonly authorizedPermissions?: readonly string[] | null;
  readonly rules: Readonly<Record<string, string | readonly string[]>>;
  readonly scopes?: readonly WrittenScope[] | null;
  /** Seconds. */
  readonly maxExpiration?: number | null;
}

/** The longest life of a token from an exchange. */
export const maxLifeSeconds = 86_400;
/** For an issuer without its own limit; also what the CLI requests by default. */
export const defaultLifeSeconds = 7_200;

const maxRules = 20;
const maxPatterns = 50;
const maxPatternChars = 500;
export const maxPolicies = 100;
/** Each exchange compares all patterns. Policies without alternatives never exceed this limit. */
const maxAllPatterns = maxPolicies * maxRules;
const maxAllChars = 64 * 1024;
/** All of an issuer's tokens for an organization share these claims, so a rule for them limits nothing. */
const commonClaims = ['aud', 'iss'];

/** Throws InvalidRequestError. */
export function parsePolicies(written: readonly WrittenPolicy[]): TrustPolicy[] {
  const policies = parseSplitPolicies(written);
  checkTotals(policies);
  return policies;
}

/** For policies that may be split, which repeats their patterns. These are therefore not counted. */
export function parseSplitPolicies(written: readonly WrittenPolicy[]): TrustPolicy[] {
  checkCount(written);
  return written.map(parsePolicy);
}

/** Throws InvalidRequestError. */
export function checkTotals(policies: readonly TrustPolicy[]): void {
  checkCount(policies);
  const patterns = policies.flatMap(({ rules }) => Object.values(rules).flat());
  if (patterns.length > maxAllPatterns || patterns.join('').length > maxAllChars)
    throw new InvalidRequestError(
      `The policies of an issuer can have at most ${maxAllPatterns} patterns with ${maxAllChars} characters`,
    );
}

function checkCount({ length }: readonly unknown[]): void {
  if (length > maxPolicies) throw new InvalidRequestError(`An issuer can have at most ${maxPolicies} policies`);
}

function parsePolicy(written: WrittenPolicy): TrustPolicy {
  const { decision, authorizedPermissions, maxExpiration } = written;
  if (decision !== 'allow' && decision !== 'deny')
    throw new InvalidRequestError('The decision of a policy is allow or deny');
  const tokenKind = kindOf(written);
  const isDenial = decision === 'deny';
  const owner = ownerOf(written, tokenKind);
  if (owner === null && !isDenial && (tokenKind === 'team' || tokenKind === 'personal'))
    throw new InvalidRequestError(
      `A policy for tokens of type ${tokenKind} needs a ${tokenKind === 'team' ? 'teamName' : 'userLogin'}`,
    );
  const unknown = (authorizedPermissions ?? []).find((name) => name !== 'admin' && name !== 'standard');
  if (unknown !== undefined)
    throw new InvalidRequestError(
      'authorizedPermissions has "admin", "standard" or nothing; scopes limits a token to stacks',
    );
  const isAdmin = !isDenial && (authorizedPermissions ?? []).includes('admin');
  if (isAdmin && tokenKind !== 'organization')
    throw new InvalidRequestError('Only tokens of type organization can be given "admin"');
  if (maxExpiration !== undefined && maxExpiration !== null) checkLife(maxExpiration);
  const scopes = isDenial || !written.scopes ? null : parseScopes(written.scopes);
  if (tokenKind === 'service' && !isDenial && scopes === null)
    throw new InvalidRequestError('A policy for tokens of type service needs scopes');
  return { decision, tokenKind, owner, isAdmin, rules: rulesOf(written), scopes, maxSeconds: maxExpiration || null };
}

function kindOf({ decision, roleID, runnerID, tokenType }: WrittenPolicy): TrustKind {
  const isAny = decision === 'deny' && (tokenType ?? 'any') === 'any';
  const kind = isAny ? 'any' : tokenKinds.find((each) => each === tokenType);
  if (kind === undefined || runnerID)
    throw new InvalidRequestError(
      'The tokenType of a policy is organization, team, personal or service; a policy that denies may be about any',
    );
  if (roleID) throw new InvalidRequestError('There are no custom roles here; scopes says what a token may do');
  return kind;
}

function ownerOf({ teamName, userLogin }: WrittenPolicy, kind: TrustKind): string | null {
  if (teamName && kind !== 'team') throw new InvalidRequestError('teamName is for tokens of type team');
  if (userLogin && kind !== 'personal') throw new InvalidRequestError('userLogin is for tokens of type personal');
  return teamName || userLogin || null;
}

function rulesOf({ decision, rules }: WrittenPolicy): Record<string, string[]> {
  const entries = Object.entries(rules).map(([path, patterns]): [string, string[]] => [path, [patterns].flat()]);
  if (entries.length > maxRules) throw new InvalidRequestError(`A policy can have at most ${maxRules} rules`);
  for (const [path, patterns] of entries) {
    const isText = [path, ...patterns].every(
      (text) => text !== '' && text.length <= maxPatternChars && text.isWellFormed() && !text.includes('\0'),
    );
    if (!isText || path === '__proto__' || patterns.length === 0 || patterns.length > maxPatterns)
      throw new InvalidRequestError(
        `The rule for ${JSON.stringify(path.slice(0, 60))} is not valid: a claim, and 1 to ${maxPatterns} patterns of 1 to ${maxPatternChars} characters`,
      );
  }
  const limits = entries.some(
    ([path, patterns]) => !commonClaims.includes(path) && patterns.every((pattern) => !/^\*+$/.test(pattern)),
  );
  if (decision === 'allow' && !limits)
    throw new InvalidRequestError(
      'A policy that allows needs a rule for a claim besides aud and iss, with more than *: otherwise every pipeline of the issuer could obtain a token',
    );
  return Object.fromEntries(entries);
}

/** Throws InvalidRequestError. */
export function checkLife(seconds: number): void {
  if (!Number.isInteger(seconds) || seconds < 0 || seconds > maxLifeSeconds)
    throw new InvalidRequestError(`maxExpiration is between 1 and ${maxLifeSeconds} seconds`);
}

/** The form in responses and lists. */
export function writePolicy(policy: TrustPolicy) {
  const { decision, maxSeconds, owner, rules, scopes, tokenKind } = policy;
  return {
    decision,
    tokenType: tokenKind as string,
    ...(owner !== null && tokenKind === 'team' ? { teamName: owner } : {}),
    ...(owner !== null && tokenKind === 'personal' ? { userLogin: owner } : {}),
    authorizedPermissions: permissionsOf(policy),
    rules: Object.fromEntries(
      Object.entries(rules).map(([path, patterns]) => [
        path,
        patterns.length === 1 ? (patterns[0] as string) : patterns,
      ]),
    ),
    ...(scopes === null
      ? {}
      : {
          scopes: scopes
            .map(writeScope)
            .map((scope) => ({ ...scope, permissions: [...scope.permissions] as string[] })),
        }),
    ...(maxSeconds === null ? {} : { maxExpiration: maxSeconds }),
  };
}

/** For tokens of organizations, the pulumiservice provider expects one of its own words. */
function permissionsOf({ decision, isAdmin, tokenKind }: TrustPolicy): string[] {
  if (isAdmin) return ['admin'];
  return decision === 'allow' && tokenKind === 'organization' ? ['standard'] : [];
}
