// Documents that are as bad as the limits permit, each in its own way. `stack` is the name in URNs, `note` differs between versions.

const type = 'test:index:Thing';
const rootUrn = (stack: string): string => `urn:pulumi:${stack}::proj::pulumi:pulumi:Stack::proj-${stack}`;
export const thingUrn = (stack: string, name: string): string => `urn:pulumi:${stack}::proj::${type}::${name}`;
/** The resource of each state that is asked for. */
export const worstThing = 'worst';

const secretKeys = '"4dabf18193072939515e22adb298388d":"1b47061264138c4ac30d75fd1eb44270"';

export type StateShape = (stack: string, note: string) => string;

/** As deep as the CLI accepts: the document, the list and the resource are above it. */
const deepest = 9_900;

function nested(inner: string, [open, close]: readonly [string, string]): string {
  return `${open.repeat(deepest)}${inner}${close.repeat(deepest)}`;
}

function documentOf(stack: string, rootOutputs: string, resources: Iterable<string>, pending = ''): string {
  const root = `{"urn":"${rootUrn(stack)}","custom":false,"type":"pulumi:pulumi:Stack","outputs":${rootOutputs}}`;
  const list = [root, ...resources].join(',');
  return `{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},"resources":[${list}],"pending_operations":[${pending}]}}`;
}

function thing(stack: string, name: string, members: string): string {
  return `{"urn":"${thingUrn(stack, name)}","custom":true,"id":"x","type":"${type}","parent":"${rootUrn(stack)}",${members}}`;
}

function* times(count: number, make: (at: number) => string): Generator<string> {
  for (let at = 0; at < count; at++) yield make(at);
}

const object = (count: number, member: (at: number) => string): string => `{${[...times(count, member)].join(',')}}`;

/** Values that are nested as deep as they may be. */
const deepState: StateShape = (stack, note) => {
  const list = nested(`"${note}"`, ['[', ']']);
  const tree = nested(`"${note}"`, ['{"a":', '}']);
  const secret = nested(`{${secretKeys},"ciphertext":"${note}"}`, ['{"a":', '}']);
  const inputs = `"inputs":{"list":${list},"secret":${secret}},"outputs":{"tree":${tree}}`;
  const lists = `"dependencies":${list},"propertyDependencies":${tree},"aliases":${list}`;
  const pending = `{"type":"creating","resource":${thing(stack, 'pending', `"inputs":${tree}`)}}`;
  const root = `{"list":${list},"tree":${tree},"secret":${secret}}`;
  return documentOf(stack, root, [thing(stack, worstThing, `${inputs},${lists}`)], pending);
};

/** Many resources, each with dependencies on those before it, all of which change. */
const wideState: StateShape = (stack, note) =>
  documentOf(stack, '{}', [
    thing(stack, worstThing, `"inputs":{"note":"${note}"}`),
    ...times(8_000, (at) => {
      const before = [...times(5, (back) => `"${thingUrn(stack, `r${Math.max(0, at - back - 1)}`)}"`)].join(',');
      return thing(stack, `r${at}`, `"inputs":{"note":"${note}${at}"},"dependencies":[${before}]`);
    }),
  ]);

/** One resource of almost 8 MiB with values that are as many as possible, and outputs of the stack like that. */
const manyLeaves: StateShape = (stack, note) => {
  const many = object(400_000, (at) => `"k${at}":"${note}"`);
  return documentOf(
    stack,
    object(350_000, (at) => `"k${at}":"${note}"`),
    [
      thing(
        stack,
        worstThing,
        `"inputs":${many.slice(0, 3_900_000).replace(/,[^,]*$/, '}')},"outputs":${many.slice(0, 3_900_000).replace(/,[^,]*$/, '}')}`,
      ),
    ],
  );
};

/** The same with secrets, and with as many properties as are compared one by one. */
const manySecrets: StateShape = (stack, note) => {
  const secrets = (count: number): string =>
    object(count, (at) => `"s${at}":{${secretKeys},"ciphertext":"${note}${at}"}`);
  return documentOf(stack, secrets(20_000), [
    thing(stack, worstThing, `"inputs":${secrets(19_000)},"outputs":${secrets(19_000)}`),
    thing(stack, 'near', `"inputs":${secrets(5_000)},"outputs":${object(19_999, (at) => `"p${at}":"${note}"`)}`),
  ]);
};

/** Names, types and texts that are very long. */
const longTexts: StateShape = (stack, note) => {
  const name = (at: number): string => `${at}${'n'.repeat(200_000)}`;
  const text = JSON.stringify(`${note} <script>\n# "${'\\"x'.repeat(400_000)}`);
  const pending = `{"type":"creating","resource":${thing(stack, name(99), `"inputs":{"a":${text}}`)}}`;
  return documentOf(
    stack,
    `{"readme":${text},"${'k'.repeat(100_000)}":${text}}`,
    [
      thing(stack, worstThing, `"inputs":{"text":${text}},"provider":"${'p'.repeat(500_000)}"`),
      ...times(20, (at) => thing(stack, name(at), `"dependencies":["${thingUrn(stack, name(at))}"]`)),
    ],
    pending,
  );
};

/** What a property of the worst resource may be called, in one of 20,000 properties: for the history of each. */
const manyProperties: StateShape = (stack, note) =>
  documentOf(stack, '{}', [
    thing(
      stack,
      worstThing,
      `"inputs":${object(19_900, (at) => `"${'p'.repeat(150)}${at}":"${note}"`)},"outputs":${object(19_900, (at) => `"${'p'.repeat(150)}${at}":"${note}"`)}`,
    ),
  ]);

export const stateShapes: Readonly<Record<string, StateShape>> = {
  deep: deepState,
  wide: wideState,
  leaves: manyLeaves,
  secrets: manySecrets,
  texts: longTexts,
  properties: manyProperties,
};
