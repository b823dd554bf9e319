import { Type } from 'typebox';
import { Nullable } from '../../shared/platform/schema/standard-schema.ts';
import { Count, CountOrNull, Flag, Text, TextOrNull, Texts, Time, TimeOrNull } from './output-types.ts';

const NewToken = Type.Object({ id: Text, token: Text });
const Policy = Type.Object({
  id: Text,
  decision: Text,
  tokenType: Text,
  teamName: Type.Optional(Text),
  userLogin: Type.Optional(Text),
  authorizedPermissions: Texts,
  rules: Type.Record(Text, Type.Union([Text, Texts])),
  scopes: Type.Optional(Type.Array(Type.Object({ permissions: Texts, stacks: Text }))),
  maxExpiration: Type.Optional(Count),
});
const Limit = Type.Object({ used: CountOrNull, limit: CountOrNull, isDefault: Flag });
const LostKey = Type.Object({ owner: Text, version: Count, masterKeyId: Text, reason: Text });
const SiteStatus = Type.Object({
  role: Text,
  term: Count,
  fencedSince: TimeOrNull,
  readOnly: Nullable(Type.Object({ since: Time, reason: Text })),
  runningUpdates: Count,
  postgres: Type.Object({
    isReceiving: Nullable(Type.Boolean()),
    replaySeconds: Nullable(Type.Number()),
    standbys: Type.Array(Type.Object({ name: Text, state: TextOrNull, sync: TextOrNull, lagBytes: CountOrNull })),
  }),
  stores: Type.Array(Type.Object({ name: Text, state: Text, term: CountOrNull })),
  blobs: Type.Object({ copies: Text, blobs: Count, bytes: Count, seconds: Count }),
});

/** By the words of the command. */
export const adminOutputs = {
  'admin list': Type.Object({
    members: Type.Array(Type.Object({ organization: TextOrNull, login: TextOrNull, role: TextOrNull })),
    people: Type.Array(Type.Object({ login: Text, siteAdmin: Flag, isActive: Flag })),
    tokens: Type.Array(
      Type.Object({
        id: Text,
        login: Text,
        description: Text,
        createdAt: Time,
        expiresAt: TimeOrNull,
        lastUsedAt: TimeOrNull,
      }),
    ),
  }),
  'admin user create-token': NewToken,
  'admin token create': NewToken,
  'admin token rotate': NewToken,
  'admin token list': Type.Object({
    tokens: Type.Array(
      Type.Object({
        id: Text,
        kind: Text,
        name: TextOrNull,
        owner: TextOrNull,
        role: TextOrNull,
        isProvisioning: Flag,
        scopes: Nullable(Type.Array(Type.Object({ permissions: Texts, stacks: Text }))),
        createdAt: Time,
        expiresAt: TimeOrNull,
        lastUsedAt: TimeOrNull,
      }),
    ),
  }),
  'admin token max-days': Type.Object({
    isPreview: Flag,
    days: CountOrNull,
    tokens: Type.Array(
      Type.Object({
        id: Text,
        kind: Text,
        owner: Text,
        name: TextOrNull,
        description: Text,
        expiresAt: Time,
        ends: Flag,
      }),
    ),
  }),
  'admin user sign-in-link': Type.Object({ login: Text, link: Text, expiresAt: Time }),
  'admin team list': Type.Object({
    teams: Type.Array(
      Type.Object({
        name: Text,
        description: Text,
        members: Type.Array(Type.Object({ login: Text, isAdmin: Flag })),
      }),
    ),
  }),
  'admin grant list': Type.Object({
    /** Maximum permissions of roles below admin; null: the permissions of the role. */
    defaults: Nullable(Texts),
    grants: Type.Array(
      Type.Object({
        id: Text,
        effect: Text,
        permissions: Texts,
        stacks: Text,
        tag: Nullable(Type.Object({ name: Text, value: TextOrNull })),
        user: TextOrNull,
        team: TextOrNull,
        token: TextOrNull,
        role: TextOrNull,
      }),
    ),
  }),
  'admin issuer list': Type.Object({
    issuers: Type.Array(
      Type.Object({
        name: Text,
        url: Text,
        audience: Text,
        replay: Text,
        maxSeconds: CountOrNull,
        hasGivenKeys: Flag,
        policies: Type.Array(Policy),
      }),
    ),
  }),
  'admin rule list': Type.Object({
    rules: Type.Array(
      Type.Object({
        id: Text,
        kind: Text,
        project: TextOrNull,
        stack: TextOrNull,
        tag: Nullable(Type.Object({ name: Text, value: Text })),
        settings: Type.Record(Text, Type.Unknown()),
        note: Text,
        setAt: Time,
        setBy: TextOrNull,
      }),
    ),
  }),
  'admin rule estimate': Type.Object({
    kind: Text,
    count: Count,
    bytes: Count,
    stackCount: Count,
    heldCount: Count,
    otherCount: Count,
    stacks: Type.Array(Type.Object({ project: Text, stack: Text, count: Count, bytes: Count })),
  }),
  'admin approvals': Type.Object({
    approvals: Type.Array(
      Type.Object({
        id: Text,
        kind: Text,
        commit: Text,
        request: Text,
        askedAt: Time,
        askedBy: Text,
        approvedBy: TextOrNull,
        reason: TextOrNull,
        expiresAt: TimeOrNull,
        isValid: Flag,
      }),
    ),
  }),
  'admin quotas': Type.Object({
    organizations: Type.Array(
      Type.Object({ organization: Text, measuredAt: TimeOrNull, quotas: Type.Record(Text, Limit) }),
    ),
  }),
  'admin check-keys': Type.Object({
    masterKeys: Type.Array(Type.Object({ id: Text, dataKeys: Count, webhookSecrets: Count })),
    webhookSecrets: Count,
    blobs: Type.Array(Type.Object({ dataKey: CountOrNull, count: Count })),
    lost: Type.Array(LostKey),
  }),
  'admin audit verify': Type.Object({
    chains: Count,
    events: Count,
    problems: Type.Array(Type.Object({ organizationId: TextOrNull, kind: Text, text: Text })),
  }),
  'admin deleted list': Type.Object({
    stacks: Type.Array(
      Type.Object({
        id: Text,
        project: Text,
        stack: Text,
        deletedAt: Time,
        deletedBy: TextOrNull,
        restorableUntil: TimeOrNull,
        resourceCount: Count,
      }),
    ),
  }),
  'admin read-only status': Type.Object({
    readOnly: Nullable(Type.Object({ since: Time, reason: Text })),
    runningUpdates: Count,
  }),
  'admin fsck': Type.Object({
    ok: Flag,
    checked: Type.Record(Text, Count),
    notes: Texts,
    kinds: Type.Record(
      Text,
      Type.Object({ found: Count, fixed: Count, means: Text, remedy: Text, repair: TextOrNull }),
    ),
    findings: Type.Array(Type.Object({ kind: Text, object: Text, detail: TextOrNull, isFixed: Flag })),
  }),
  'admin scrub': Type.Object({
    checked: Count,
    damaged: Count,
    repaired: Count,
    /** Documents that stay damaged. */
    unrepaired: Type.Array(Type.Object({ kind: Text, id: Text, owner: TextOrNull })),
    unread: Type.Array(Type.Object({ id: Text, error: Text })),
  }),
  'admin reconcile': Type.Object({
    objects: Count,
    rows: Count,
    adopted: Count,
    held: Count,
    marked: Count,
    missing: Count,
  }),
  'admin site status': SiteStatus,
  'admin site promote': SiteStatus,
  'admin site demote': SiteStatus,
};
