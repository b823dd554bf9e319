import type { TSchema } from 'typebox';
import type { SubjectFacts } from '../../../shared/access/access-decision.ts';
import type { Permission } from '../../../shared/access/permissions.ts';
import type { Role } from '../../../shared/access/roles.ts';
import type { AuditAction } from '../../../shared/audit/audit-actions.ts';
import type { SignInMethod } from '../../../shared/identity/sign-in-method.ts';
import type { TokenKind } from '../../../shared/identity/token-kinds.ts';
import type { LeaseFence } from '../../../shared/updates/fence.ts';

export type Access =
  | { readonly kind: 'public' }
  | { readonly kind: 'user' }
  /** Site admins. */
  | { readonly kind: 'operator' }
  /** Users who are signed in with a browser. */
  | { readonly kind: 'session' }
  /** Each procedure declares its own access. */
  | { readonly kind: 'procedures' }
  /** A member of the organization in the path (`read`), one of its admins (`manage`), or its identity provider (`provision`). */
  | { readonly kind: 'organization'; readonly permission: 'read' | 'manage' | 'provision' }
  /** `former`: the path may contain a former name, and the service checks the access. */
  | { readonly kind: 'stack'; readonly permission: Permission; readonly former?: true }
  /**
   * `ended`: also just after the update has ended. `fenced`: the committing statement checks the lease itself, so a cached lease is not
   * looked up.
   */
  | { readonly kind: 'lease'; readonly ended?: true; readonly fenced?: true };

/**
 * What happens to a call when its token, user or address makes too many. `never`: not limited, because an update could not be saved or
 * ended without the call, or because the CLI would continue differently. `needed`: refused, unless an active update of the stack in the
 * path needs the call to save its state. `repeated`: refused; the CLI repeats the call. `held`: throttled for a while before it is refused,
 * because the CLI does not repeat the call, or fails at once without it.
 */
export type RateClass = 'never' | 'needed' | 'repeated' | 'held';

/** The CLI's, or that of the contract. */
export type Dialect = 'pulumi' | 'contract';

export interface Caller {
  /** Null if the token belongs to a team or an organization. */
  readonly userId: string | null;
  readonly tokenId: string;
  readonly tokenKind: TokenKind;
  readonly tokenName: string | null;
  /** Null: the token was not issued for an id token. */
  readonly policyId: string | null;
  readonly teamName: string | null;
  /** Whether the token has fewer permissions than its owner. */
  readonly isScoped: boolean;
  /** Whether the token is an identity provider's. */
  readonly isProvisioning: boolean;
  readonly isSession: boolean;
  readonly login: string;
  readonly displayName: string;
  readonly email: string;
  readonly siteAdmin: boolean;
  /** The role in the organization in the path. */
  readonly role: Role | null;
  /** Whether the caller has access to the organization in the path. */
  readonly belongs: boolean;
  /** The facts in the organization in the path; null if only the role decides. */
  readonly facts: SubjectFacts | null;
  /** Tags of the stack in the path as JSON text, if `facts` decide about it and it exists. */
  readonly stackTags: string | null;
}

export interface Session {
  readonly id: string;
  readonly userId: string;
  readonly login: string;
  readonly displayName: string;
  readonly siteAdmin: boolean;
  readonly method: SignInMethod;
  /** Since the sign-in, by the clock of Postgres. */
  readonly ageSeconds: number;
}

/** The parts of a lease that never change. */
export interface CachedLease extends LeaseFence {
  readonly journalVersion: number;
  readonly exclusive: boolean;
  readonly dryRun: boolean;
  /** Stored size of the state that the update began with, in bytes. */
  readonly baseBytes: number;
}

export interface Lease extends CachedLease {
  /** Whether entries of a running update were in no checkpoint when the lease was looked up; missing if the lease was cached. */
  readonly hasPendingEntries?: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    access?: Access;
    /** Every route needs one. */
    rate?: RateClass;
    /** The action in the audit log, or why calls are not recorded one by one. Routes that may change something need it. */
    audit?: AuditAction | { readonly none: string };
    /** Why calls continue while the installation is read-only, although their method may change something. */
    whileReadOnly?: string;
    /** The route begins, renews or ends an update, and has priority for connections to Postgres. */
    goesFirst?: true;
    /** `payload`: the route reads the raw body itself; `form`: the body is the form of a page; otherwise, the body is parsed as JSON. */
    body?: 'payload' | 'form';
    /** The schema for the contract's dialect, if it requires more than `schema.body`. */
    contractBody?: TSchema;
    /** The format of error responses (RFC 6749). */
    errors?: 'oauth';
    /** The Accept header does not have to name a protocol version. */
    anyAccept?: true;
    /** Only for the OpenAPI document, where the enforced schemas would be too strict or too loose. */
    described?: {
      readonly body?: TSchema;
      readonly responses?: Readonly<Record<number, TSchema>>;
      readonly produces?: readonly string[];
      /** Statuses in addition to those that access and body imply. */
      readonly errorStatuses?: readonly number[];
    };
  }
  interface FastifyRequest {
    /** Set on routes with access `user`, `organization` or `stack`. */
    caller: Caller;
    /** Set on routes with access `session`. */
    session: Session;
    /** Set on routes with access `lease`. */
    lease: Lease;
    dialect: Dialect;
  }
}
