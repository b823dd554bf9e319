import { type Static, type TSchema, Type } from 'typebox';
import { TransferError } from '../../shared/diy/diy-layout.ts';
import { Nullable, standard } from '../../shared/platform/schema/standard-schema.ts';

/** Imports read these members. Others are allowed, and optional members may be null. */
const text = Type.Optional(Type.String());
const texts = <Value extends TSchema>(value: Value) => Type.Optional(Type.Record(Type.String(), value));

const ConfigValue = Type.Object({
  string: text,
  secret: Type.Optional(Type.Boolean()),
  object: Type.Optional(Type.Boolean()),
});

const info = {
  ...{ kind: text, message: text, result: text },
  ...{ startTime: Type.Optional(Type.Number()), endTime: Type.Optional(Type.Number()) },
  ...{ environment: texts(Type.Unknown()), config: texts(ConfigValue), resourceChanges: texts(Type.Number()) },
  version: Type.Optional(Type.Integer()),
};

const ListedUpdate = Type.Object({
  ...info,
  info: Type.Optional(Type.Object(info)),
  updateID: text,
  requestedBy: Type.Optional(Type.Object({ name: text, githubLogin: text })),
  // Another Holdfast reports when retention has deleted the state or the events.
  ...{ stateDeletedAt: text, eventsDeletedAt: text },
});
export type ListedUpdate = Static<typeof ListedUpdate>;

const ListedStack = Type.Object({ orgName: Type.String(), projectName: Type.String(), stackName: Type.String() });

export const answers = {
  user: Type.Object({ githubLogin: text }),
  stacks: Type.Object({ stacks: Type.Optional(Type.Array(Nullable(ListedStack))), continuationToken: text }),
  stack: Type.Object({ tags: texts(Type.Unknown()) }),
  updates: Type.Object({
    updates: Type.Optional(Type.Array(Nullable(ListedUpdate))),
    total: Type.Optional(Type.Number()),
  }),
  plaintexts: Type.Object({ plaintexts: texts(Type.String()) }),
};

/** The answer without null members; an empty object in place of no answer. Throws TransferError. */
export function readAnswer<Schema extends TSchema>(schema: Schema, answer: unknown, of: string): Static<Schema> {
  const checked = standard(schema)['~standard'].validate(withoutNulls(answer ?? {}));
  if ('value' in checked) return checked.value;
  const [{ message, path } = { message: '', path: [] }] = checked.issues;
  throw new TransferError(`${of} answers in an unknown shape: /${path.join('/')} ${message}`);
}

function withoutNulls(value: unknown): unknown {
  // Items are kept, even null: fewer items than a full page would mean the last page.
  if (Array.isArray(value)) return value.map(withoutNulls);
  if (typeof value !== 'object' || value === null) return value;
  const members = Object.entries(value).filter(([, each]) => each !== null);
  return Object.fromEntries(members.map(([name, each]) => [name, withoutNulls(each)]));
}
