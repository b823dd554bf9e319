import type { JWTPayload } from 'jose';
import { allPermissions } from '../../../shared/access/permissions.ts';
import type { NewToken, TokenOwner } from '../../../shared/identity/token-repository.ts';
import type { TokenScope } from '../../../shared/identity/token-scopes.ts';
import type { IssuerRow, PolicyRow } from '../../../shared/identity/trust/issuer-repository.ts';
import { defaultLifeSeconds } from '../../../shared/identity/trust/trust-definitions.ts';
import type { ExchangeRequest } from './exchange-request.ts';
import type { IdToken } from './id-token.ts';

interface Given {
  readonly asked: ExchangeRequest;
  readonly held: IssuerRow & { readonly now: Date };
  readonly policy: PolicyRow;
  readonly verified: IdToken;
  readonly hash: Buffer;
  readonly suffix: string;
}

const maxNameChars = 100;
const maxDescriptionChars = 250;
/** CI systems name a run by these claims. */
const runClaims = ['run_id', 'pipeline_id', 'build_number', 'job_id', 'jti'];

/** The token has no more than the permissions and lifetime of the policy. */
export function exchangedToken({ asked, hash, held, policy, suffix, verified }: Given): NewToken {
  const { claims } = verified;
  const limits = [asked.lifetimeSeconds, policy.maxSeconds, held.maxSeconds ?? defaultLifeSeconds];
  const seconds = Math.min(...limits.filter((each) => each !== null));
  return {
    owner: ownerOf(held, policy, asked),
    hash,
    name: tokenName(claims, suffix),
    description: plain(`${held.name}: ${claims.sub}`).slice(0, maxDescriptionChars),
    scopes: scopesOf(policy, asked.organization),
    expiresAt: new Date(held.now.getTime() + seconds * 1000),
    createdBy: null,
    exchange: { policyId: policy.id, organizationId: held.organizationId, claims },
  };
}

/** Token names cannot be reused, so the name of the CI run gets a random suffix. */
export function tokenName(claims: JWTPayload, suffix: string): string {
  const run = runClaims.map((name) => claims[name]).find((value) => ['string', 'number'].includes(typeof value));
  const end = ` ${sanitized(String(run ?? '')).slice(0, 36)} ${suffix}`.replace(/ +/g, ' ');
  return `ci ${sanitized(String(claims.sub))}`.slice(0, maxNameChars - end.length).trimEnd() + end;
}

function ownerOf(
  { organizationId }: IssuerRow,
  { teamId, tokenKind, userId }: PolicyRow,
  asked: ExchangeRequest,
): TokenOwner {
  switch (tokenKind) {
    case 'team':
      return { kind: 'team', organizationId, teamId: teamId as string };
    case 'personal':
      return { kind: 'personal', userId: userId as string };
    case 'service':
      return { kind: 'service', organizationId };
    default:
      return { kind: 'organization', organizationId, role: asked.admin ? 'admin' : 'member' };
  }
}

/** A personal token is limited to the organization: the admins of its user's other organizations have not made this policy. */
function scopesOf({ scopes, tokenKind }: PolicyRow, organization: string): readonly TokenScope[] | null {
  if (tokenKind !== 'personal') return scopes;
  const all = { organization: null, project: null, stack: null, permissions: allPermissions };
  return (scopes ?? [all]).map((scope) => ({ ...scope, organization: scope.organization ?? organization }));
}

function sanitized(text: string): string {
  return text.replaceAll('/', '.').replace(/[^a-zA-Z0-9_.:@-]/g, '_');
}

function plain(text: string): string {
  return text.toWellFormed().replaceAll('\0', '');
}
