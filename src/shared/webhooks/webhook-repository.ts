import { Type } from 'typebox';
import { type Queryable, type Row, sql } from '../platform/db/sql.ts';
import { Bytes, Nullable } from '../platform/schema/standard-schema.ts';
import type { EncryptedSecret } from '../secrets/encrypted-secrets.ts';

const WebhookRow = Type.Object({
  id: Type.String(),
  organizationId: Type.String(),
  stackId: Nullable(Type.String()),
  name: Type.String(),
  displayName: Type.String(),
  url: Type.String(),
  format: Type.String(),
  isActive: Type.Boolean(),
  /** Without names and groups, the webhook gets all events. */
  events: Type.Array(Type.String()),
  groups: Type.Array(Type.String()),
  encrypted: Nullable(Bytes),
  masterKeyId: Nullable(Type.String()),
  /** The last edit, in microseconds since the epoch. Reencrypting the secret is no edit. */
  editedMicros: Type.String(),
});
export type WebhookRow = Row<typeof WebhookRow>;
const StackWebhookRow = Type.Object({
  ...WebhookRow.properties,
  stackId: Type.String(),
  project: Type.String(),
  stack: Type.String(),
  /** The stack is not deleted, and the caller may administer it. */
  isShown: Type.Boolean(),
});
export type StackWebhookRow = Row<typeof StackWebhookRow>;

const SecretRow = Type.Object({ id: Type.String(), encrypted: Bytes, masterKeyId: Type.String() });
const IdRow = Type.Object({ id: Type.String() });

/** An organization, or one of its stacks. */
export interface WebhookScope {
  readonly organizationId: string;
  readonly stackId: string | null;
}

export type WebhookChange = Pick<WebhookRow, 'displayName' | 'url' | 'format' | 'isActive' | 'events' | 'groups'>;

export function createWebhookRepository(db: Queryable) {
  const columns = sql.fragment`w.id, w.organization_id as "organizationId", w.stack_id as "stackId", w.name,
    w.display_name as "displayName", w.url, w.format, w.is_active as "isActive", w.events, w.event_groups as "groups",
    w.secret as encrypted, w.master_key_id as "masterKeyId",
    (extract(epoch from w.modified_at) * 1000000)::bigint::text as "editedMicros"`;
  const ofScope = ({ organizationId, stackId }: WebhookScope) => sql.fragment`
    w.organization_id = ${organizationId} and w.stack_id is not distinct from ${stackId}::uuid`;
  const bytes = (secret: EncryptedSecret | null) =>
    secret === null ? sql.fragment`null` : sql.fragment`${sql.binary(secret.encrypted)}::bytea`;
  return {
    /** Violates `webhooks_name_key` or `webhooks_display_name_key` if the scope already has a webhook with this name. */
    insert: (
      scope: WebhookScope,
      webhook: WebhookChange & {
        readonly id: string;
        readonly name: string;
        readonly secret: EncryptedSecret | null;
        readonly createdBy: string | null;
      },
    ) =>
      db.one(sql.rows(WebhookRow)`
        /* webhooks.insert */
        insert into webhooks as w (id, organization_id, stack_id, name, display_name, url, format, is_active, events, event_groups,
          secret, master_key_id, created_by)
        values (${webhook.id}, ${scope.organizationId}, ${scope.stackId}, ${webhook.name}, ${webhook.displayName}, ${webhook.url},
          ${webhook.format}, ${webhook.isActive}, ${sql.array([...webhook.events], 'text')},
          ${sql.array([...webhook.groups], 'text')}, ${bytes(webhook.secret)}, ${webhook.secret?.masterKeyId ?? null},
          ${webhook.createdBy})
        returning ${columns}`),

    list: (scope: WebhookScope) =>
      db.any(sql.rows(WebhookRow)`
        /* webhooks.list */ select ${columns} from webhooks w where ${ofScope(scope)} order by w.display_name`),

    find: (scope: WebhookScope, name: string) =>
      db.maybeOne(sql.rows(WebhookRow)`
        /* webhooks.find */ select ${columns} from webhooks w where ${ofScope(scope)} and w.name = ${name}`),

    lock: (scope: WebhookScope, name: string) =>
      db.maybeOne(sql.rows(WebhookRow)`
        /* webhooks.lock */ select ${columns} from webhooks w where ${ofScope(scope)} and w.name = ${name} for no key update`),

    /** Ordered by display name. */
    listPage: (scope: WebhookScope, after: string | null, limit: number) =>
      db.any(sql.rows(WebhookRow)`
        /* webhooks.listPage */
        select ${columns} from webhooks w where ${ofScope(scope)} and (${after}::text is null or w.display_name > ${after})
        order by w.display_name limit ${limit}`),

    /**
     * After the given webhook, or after all webhooks of its stack. `facts` belong to the caller; null for a caller who administers all
     * stacks.
     */
    listOfStacks: (
      organizationId: string,
      facts: object | null,
      after: { readonly stackId: string; readonly name: string | null } | null,
      limit: number,
    ) => {
      const position =
        after === null
          ? sql.fragment`true`
          : after.name === null
            ? sql.fragment`stack_id > ${after.stackId}`
            : sql.fragment`(stack_id, name) > (${after.stackId}, ${after.name})`;
      return db.any(sql.rows(StackWebhookRow)`
        /* webhooks.listOfStacks */
        select ${columns}, p.name as project, s.name as stack, s.deleted_at is null and (${facts === null}
          or effective_permissions(${JSON.stringify(facts)}::jsonb, p.organization_id, p.name, s.name) & 8 = 8) as "isShown"
        from (
          select * from webhooks where organization_id = ${organizationId} and stack_id is not null
            and ${position}
          order by stack_id, name limit ${limit}
        ) w join stacks s on s.id = w.stack_id join projects p on p.id = s.project_id
        order by w.stack_id, w.name`);
    },

    /** Undefined keeps the secret, null removes it. */
    update: (id: string, change: WebhookChange, secret: EncryptedSecret | null | undefined) =>
      db.one(sql.rows(WebhookRow)`
        /* webhooks.update */
        update webhooks w set modified_at = now(), display_name = ${change.displayName}, url = ${change.url},
          format = ${change.format}, is_active = ${change.isActive}, events = ${sql.array([...change.events], 'text')},
          event_groups = ${sql.array([...change.groups], 'text')}
          ${
            secret === undefined
              ? sql.fragment``
              : sql.fragment`, secret = ${bytes(secret)}, master_key_id = ${secret?.masterKeyId ?? null}`
          }
        where w.id = ${id} returning ${columns}`),

    /** Also deletes the log. */
    remove: (id: string) => db.query(sql.nothing`/* webhooks.remove */ delete from webhooks where id = ${id}`),

    count: async (scope: WebhookScope): Promise<number> => {
      const rows = await db.any(
        sql.rows(IdRow)`/* webhooks.count */ select w.id from webhooks w where ${ofScope(scope)}`,
      );
      return rows.length;
    },

    /** Secrets encrypted by another master key than `except`, ordered by webhook id. */
    listSecrets: (except: string | null, after: string | null, limit: number) =>
      db.any(sql.rows(SecretRow)`
        /* webhooks.listSecrets */
        select id, secret as encrypted, master_key_id as "masterKeyId" from webhooks
        where secret is not null and master_key_id is distinct from ${except}::text and (${after}::uuid is null or id > ${after}::uuid)
        order by id limit ${limit}`),

    /** Returns false if the secret has changed since it was read. */
    replaceSecret: async (id: string, read: Buffer, next: EncryptedSecret): Promise<boolean> => {
      const row = await db.maybeOne(sql.rows(IdRow)`
        /* webhooks.replaceSecret */
        update webhooks set secret = ${sql.binary(next.encrypted)}, master_key_id = ${next.masterKeyId}
        where id = ${id} and secret = ${sql.binary(read)} returning id`);
      return row !== null;
    },
  };
}
