import { type TSchema, Type } from 'typebox';
import { DebugStatus } from '../../shared/platform/debug/debug-socket.ts';
import { Finding } from '../doctor/check.ts';
import { Installation } from '../remote/installation-view.ts';
import { adminOutputs } from './admin-outputs.ts';
import { movingOutputs } from './moving-outputs.ts';
import { Count, type Printed, Text, Texts } from './output-types.ts';

const Plan = Type.Object({
  counts: Type.Object({ create: Count, change: Count, delete: Count, unchanged: Count }),
  changes: Type.Array(
    Type.Object({
      action: Text,
      kind: Text,
      organization: Text,
      name: Text,
      fields: Type.Array(
        Type.Object({ field: Text, from: Type.Optional(Type.Unknown()), to: Type.Optional(Type.Unknown()) }),
      ),
    }),
  ),
  waiting: Type.Array(Type.Object({ kind: Text, organization: Text, name: Text, members: Texts })),
});

/** Besides the name of the schema, by the words of the command. */
export const outputs = {
  ...adminOutputs,
  ...movingOutputs,
  'debug list': Type.Object({
    processes: Type.Array(Type.Object({ name: Type.String(), ...DebugStatus.properties })),
    /** Names of processes that do not answer. */
    unanswered: Type.Array(Type.String()),
  }),
  plan: Plan,
  /** `applied`: number of changes that were made. `refused`: the messages of the other changes. */
  apply: Type.Object({ ...Plan.properties, applied: Count, refused: Texts }),
  top: Installation,
  doctor: Type.Object({ findings: Type.Array(Finding) }),
};
export type OutputName = keyof typeof outputs;

/** For example `holdfast.admin.token.list/v1`. A change that breaks readers needs a new version; a new field does not. */
export function schemaId(name: OutputName): string {
  return `holdfast.${name.replaceAll(' ', '.')}/v1`;
}

export const jsonOption = ['--json', 'print one JSON document; `holdfast schema` has its schema'] as const;

export function printResult<Name extends OutputName>(
  name: Name,
  result: Printed<(typeof outputs)[Name]>,
  { json, text }: { readonly json: true | undefined; readonly text: string },
): void {
  const printed = json ? jsonText(name, result) : text;
  // A list may be empty.
  if (printed !== '') console.log(printed);
}

/** The JSON document that a command prints, which names its schema. */
export function jsonText<Name extends OutputName>(name: Name, result: Printed<(typeof outputs)[Name]>): string {
  return JSON.stringify({ schema: schemaId(name), ...(result as object) });
}

/** The schema of a command's output, in the form that `holdfast schema` prints. */
export function outputSchema(name: OutputName): object {
  const given: TSchema = outputs[name];
  const named = Type.Object({ schema: Type.Literal(schemaId(name)) });
  return { $schema: 'https://json-schema.org/draft/2020-12/schema', $id: schemaId(name), allOf: [named, given] };
}
