import { describe, expect, test } from '@jest/globals';
import { type JournalCase, loadSmallCases } from '../../../../../../test/fixtures/journal/journal-cases.ts';
import { replayJournal } from '../../../../../../test/support/replay-journal.ts';
import type { JournalEntryText } from '../../journal-batch.ts';

const manifest = { time: '2026-01-01T00:00:00Z', version: '' };

/** Members that would not survive being parsed and serialized again. */
const unusual = String.raw`"__proto__":{"b":1.0,"a":1e21},"a/\u0062":9007199254740993, "deletedwith":"\/é\ud800"`;

/** Large resources are read differently from small ones. */
const sizes = [
  ['small', ''],
  ['large', `,"filler":"${'x'.repeat(100_000)}"`],
] as const;

function entry(sequenceId: number, fields: string): JournalEntryText {
  return { sequenceId, text: Buffer.from(`{"version":1,"sequenceID":${sequenceId},${fields}}`) };
}

function replayed(base: string | null, ...entries: JournalEntryText[]): string {
  return replayJournal(base === null ? null : Buffer.from(base), entries, manifest).document.toString('utf8');
}

function withResources(...resources: string[]): string {
  return `{"version":3,"deployment":{"resources":[${resources.join(',')}]}}`;
}

describe('bytes of resources', () => {
  const resource = `{ ${unusual},\n "urn":"u", "inputs" : {"x":-0.0 , "x":0} }`;

  test('are kept in the base, states, swaps and pending operations', () => {
    const document = replayed(
      withResources(resource.replace('"u"', '"base"'), resource.replace('"u"', '"gone"')),
      entry(1, `"kind":1,"operationID":1,"state":${resource.replace('"u"', '"new"')}`),
      entry(2, `"kind":4,"operationID":2,"removeOld":1,"state":${resource.replace('"u"', '"swapped"')}`),
      entry(3, `"kind":0,"operationID":3,"operation":{"type":"creating", "resource": ${resource} }`),
    );
    const listed = ['"new"', '"base"', '"swapped"'].map((urn) => resource.replace('"u"', urn));
    expect(document).toContain(`"resources":[${listed.join(',')}]`);
    expect(document).toContain(`"pending_operations":[{"type":"creating", "resource": ${resource} }]`);
  });

  test("pending operations under the name of the CLI's deltas are kept, under the usual name", () => {
    const operation = `{"type":"creating","resource":${resource}}`;
    const document = replayed(
      `{"version":3,"deployment":{"resources":[],"pendingOperations":[${operation}]}}`,
      entry(1, '"kind":1,"operationID":1,"state":{"urn":"v"}'),
    );
    expect(document).toContain(`"pending_operations":[${operation}]`);
    expect(document).not.toContain('pendingOperations');
  });

  test('adding a flag keeps the rest', () => {
    const document = replayed(
      withResources(`{${unusual},"urn":"u"}`, '{"urn":"v","pendingReplacement":false,"x":1.0}', '{ "delete": true }'),
      entry(1, '"kind":1,"operationID":1,"deleteOld":0,"pendingReplacementOld":0'),
      entry(2, '"kind":1,"operationID":2,"pendingReplacementOld":1'),
      entry(3, '"kind":1,"operationID":3,"deleteOld":2'),
    );
    expect(document).toContain(
      `[{${unusual},"urn":"u","delete":true,"pendingReplacement":true},` +
        '{"urn":"v","pendingReplacement":true,"x":1.0},{ "delete": true }]',
    );
  });

  test.each(sizes)('a refresh removes dangling references and keeps the rest: %s resource', (_, filler) => {
    const document = replayed(
      withResources(
        `{"urn":"a\\u002fb"}`,
        `{${unusual}${filler},"dependencies":[ "gone" , "a\\/b", "gone"],"urn":"u","deletedWith":"gone","parent":"gone","z":1.0}`,
        `{"propertyDependencies":{"__proto__":["gone","u"], "p\\u0071":[],"r" : [ "a/b" ],"s":null},"urn":"v"}`,
        `{"urn":"w", "dependencies":["u"], "replaceWith": ["later"], "parent":"v"}`,
        `{"urn":"later"}`,
      ),
      entry(1, '"kind":3,"operationID":1'),
    );
    expect(document).toContain(
      `[{"urn":"a\\u002fb"},{${unusual}${filler},"dependencies":["a\\/b"],"urn":"u","z":1.0},` +
        `{"propertyDependencies":{"__proto__":["u"],"r" : ["a/b"]},"urn":"v"},` +
        `{"urn":"w", "dependencies":["u"], "parent":"v"},{"urn":"later"}]`,
    );
  });

  test.each(sizes)('an alias is resolved in place, the rest is kept: %s resource', (_, filler) => {
    const urn = (types: string, name: string): string => `urn:pulumi:dev::p::${types}::${name}`;
    const document = replayed(
      withResources(
        `{"urn":"${urn('new', 'a::b')}","aliases":["${urn('old', 'a::b')}"],${unusual}${filler}}`,
        `{"urn":"${urn('old$t', 'c')}","parent":"${urn('old', 'a::b')}", "type" : "t"}`,
        `{"urn":"d","provider":"${urn('old', 'a::b')}::id","dependencies":[ "x", "${urn('old$t', 'c')}"],"n":1.0}`,
        `{"urn":"e","replaceWith":["${urn('old', 'a::b')}"],"deletedWith":"${urn('new', 'a::b')}"}`,
      ),
    );
    expect(document).toContain(
      `[{"urn":"${urn('new', 'a::b')}",${unusual}${filler}},` +
        `{"urn":"${urn('new$t', 'c')}","parent":"${urn('new', 'a::b')}", "type" : "t"},` +
        `{"urn":"d","provider":"${urn('new', 'a::b')}::id","dependencies":[ "x", "${urn('new$t', 'c')}"],"n":1.0},` +
        `{"urn":"e","replaceWith":["${urn('old', 'a::b')}"],"deletedWith":"${urn('new', 'a::b')}"}]`,
    );
  });

  test('an alias is resolved in the references of snippets only', () => {
    const urn = (name: string): string => `"urn:pulumi:dev::p::t::${name}"`;
    const snippet = (name: string): string =>
      `{${unusual},"code":${urn('old')},"references":{ "__proto__" : ${name},"x":"y"}}`;
    const document = replayed(
      `{"deployment":{"resources":[{"urn":${urn('new')},"aliases":[${urn('old')}]}],"snippets":[ ${snippet(urn('old'))}]}}`,
    );
    expect(document).toContain(`"snippets":[ ${snippet(urn('new'))}]`);
  });

  test('the children of a renamed stack resource keep their URN', () => {
    const urn = (type: string, name: string): string => `urn:pulumi:dev::p::${type}::${name}`;
    const child = `{"urn":"${urn('t', 'c')}","parent":"${urn('pulumi:pulumi:Stack', 'old')}"}`;
    const document = replayed(
      withResources(
        `{"urn":"${urn('pulumi:pulumi:Stack', 'new')}","aliases":["${urn('pulumi:pulumi:Stack', 'old')}"]}`,
        child,
      ),
    );
    expect(document).toContain(child.replace('old', 'new'));
  });

  test('an alias is resolved one hop only', () => {
    const document = replayed(
      withResources('{"urn":"b","aliases":["a"]}', '{"urn":"c","aliases":["b"]}', '{"urn":"d","parent":"a"}'),
    );
    expect(document).toContain('[{"urn":"c"},{"urn":"c"},{"urn":"d","parent":"b"}]');
  });

  test('unusual members survive every recorded journal', () => {
    const inject = (text: Buffer): Buffer =>
      Buffer.from(text.toString('utf8').replaceAll('{"urn":', `{${unusual},"urn":`));
    for (const recorded of loadSmallCases()) {
      const { base, entries }: JournalCase = recorded;
      const plain = replayJournal(base, entries, manifest);
      const injected = replayJournal(
        base && inject(base),
        entries.map(({ sequenceId, text }) => ({ sequenceId, text: inject(text) })),
        manifest,
      );
      expect(injected.document.equals(inject(plain.document))).toBe(true);
    }
  });
});

describe('other members', () => {
  test('members of the base are kept, including unknown ones', () => {
    const known = `"secrets_providers":{ "type":"b64","state":1.0},"metadata":{"x":1e400},"snippets":[],"extensions":{ }`;
    const document = replayed(
      `{"later":1.0,"version":9,"features":["x"],"deployment":{"manifest":{"plugins":[]},"odd":{${unusual}},${known}}}`,
    );
    expect(document).toBe(
      `{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},` +
        `${known},"odd":{${unusual}}},"later":1.0}`,
    );
  });

  test('an extension of the base wins, others are added', () => {
    const document = replayed(
      '{"version":3,"deployment":{"extensions":{ "a": {"value":1.0} }}}',
      entry(1, '"kind":8,"operationID":1,"extensionRef":"a","extension":{"value":2}'),
      entry(2, '"kind":8,"operationID":2,"extensionRef":"__proto__","extension":{"value" : 3.0}'),
    );
    expect(document).toContain('"extensions":{ "a": {"value":1.0},"__proto__":{"value" : 3.0} }');
  });

  test('a write entry replaces the members of the base', () => {
    const document = replayed(
      '{"version":3,"deployment":{"metadata":{"a":1},"snippets":[1],"resources":[{"urn":"old"}]}}',
      entry(1, `"kind":5,"newSnapshot":{"resources":[{${unusual}}],"metadata":{"b" : 1.0},"odd":1.0}`),
      entry(2, '"kind":1,"operationID":1,"deleteOld":0'),
    );
    expect(document).toContain(`"resources":[{${unusual},"delete":true}],"metadata":{"b" : 1.0},"odd":1.0}}`);
  });
});

describe('the last of repeated members wins, as in the CLI', () => {
  test('in a base', () => {
    const document = replayed(
      '{"deployment":{"metadata":{"a":1},"resources":[{"urn":"no"}]},' +
        '"deployment":{"resources":[{"urn":"no"}],"resources":[{"taint":true,"taint":false}]}}',
    );
    expect(document).toBe(
      '{"version":3,"deployment":{"manifest":{"time":"2026-01-01T00:00:00Z","magic":"","version":""},' +
        '"resources":[{"taint":true,"taint":false}],"metadata":{}}}',
    );
  });

  test('in an entry', () => {
    const document = replayed(
      null,
      entry(1, '"kind":9,"kind":1,"operationID":1,"state":{"viewOf":"x"},"state":{"urn":"a","delete":1,"delete":2}'),
      entry(2, '"kind":1,"operationID":2,"deleteNew":1'),
    );
    expect(document).toContain('{"version":3,');
    expect(document).toContain('"resources":[{"urn":"a","delete":true}]');
  });
});
