import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { type OutputName, outputSchema, outputs, schemaId } from './outputs.ts';

class UnknownOutputError extends OperatorError {
  override readonly name = 'UnknownOutputError';
}

/** Prints the schema of one command, or the names of all. Throws UnknownOutputError. */
export function printSchema(words: readonly string[]): void {
  const names = Object.keys(outputs) as OutputName[];
  if (words.length === 0) {
    console.log(names.map((name) => `${schemaId(name)}  holdfast ${name}`).join('\n'));
    return;
  }
  const asked = words.join(' ');
  const name = names.find((each) => each === asked || schemaId(each) === asked);
  if (name === undefined)
    throw new UnknownOutputError(
      `no command \`holdfast ${asked}\` prints JSON; \`holdfast schema\` lists the commands`,
    );
  console.log(JSON.stringify(outputSchema(name), null, 2));
}
