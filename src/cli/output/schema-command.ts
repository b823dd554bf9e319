import { OperatorError } from '../../shared/platform/errors/errors.ts';
import { documentSchema } from '../configuration/document.ts';
import { type OutputName, outputSchema, outputs, schemaId } from './outputs.ts';

class UnknownOutputError extends OperatorError {
  override readonly name = 'UnknownOutputError';
}

/** Prints the schema of documents for `holdfast apply`, the schema of a command's output, or a list. Throws UnknownOutputError. */
export function printSchema(words: readonly string[], { list }: { readonly list?: true }): void {
  const names = Object.keys(outputs) as OutputName[];
  if (list) {
    console.log(names.map((name) => `${schemaId(name)}  holdfast ${name}`).join('\n'));
    return;
  }
  const asked = words.join(' ');
  const name = names.find((each) => each === asked || schemaId(each) === asked);
  if (asked !== '' && name === undefined)
    throw new UnknownOutputError(
      `no command \`holdfast ${asked}\` prints JSON; \`holdfast schema --list\` lists the commands`,
    );
  console.log(JSON.stringify(name === undefined ? documentSchema() : outputSchema(name), null, 2));
}
