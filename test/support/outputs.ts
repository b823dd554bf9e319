import { Value } from 'typebox/value';
import { type OutputName, outputs, schemaId } from '../../src/cli/output/outputs.ts';

/** Undefined if the words are of no command with --json. */
function outputNameOf(words: readonly string[]): OutputName | undefined {
  // The longest first: its words may begin with those of another command.
  const names = (Object.keys(outputs) as OutputName[]).sort((one, other) => other.length - one.length);
  return names.find((name) => words.slice(0, name.split(' ').length).join(' ') === name);
}

/** Throws if the output of a command with --json is not as its schema says. */
export function assertOutput(words: readonly string[], stdout: string): void {
  const name = outputNameOf(words);
  if (name === undefined) throw new Error(`No schema for holdfast ${words.join(' ')}`);
  const lines = stdout.split('\n').filter((line) => line !== '');
  if (lines.length === 0 || (lines.length > 1 && name !== 'backup list'))
    throw new Error(`holdfast ${name} printed ${lines.length} lines instead of one document`);
  for (const line of lines) {
    const { schema, ...found } = JSON.parse(line) as { schema: string };
    if (schema !== schemaId(name)) throw new Error(`${schema} is not the schema of holdfast ${name}`);
    const problems = Value.Errors(outputs[name], found);
    if (problems.length > 0) throw new Error(`holdfast ${name}: ${JSON.stringify(problems.slice(0, 3))}`);
    const known = JSON.stringify(Value.Clean(outputs[name], structuredClone(found)));
    if (known !== JSON.stringify(found)) throw new Error(`holdfast ${name} prints more than its schema says: ${line}`);
  }
}
