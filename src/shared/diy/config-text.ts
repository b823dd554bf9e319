import { stringify } from 'yaml';

/**
 * The CLI decodes values of objects with libraries of two YAML versions, which misread plain texts like 2012-10-17, 1_000 or no. Therefore
 * all values are written as JSON, with numbers unchanged.
 */
export function configText(settings: object, config: Readonly<Record<string, unknown>> | null): string {
  const head = Object.keys(settings).length === 0 ? '' : stringify(settings);
  if (config === null) return head;
  const lines = Object.entries(config).map(([key, value]) => {
    const text = JSON.stringify(value, null, 2).replaceAll('\n', '\n  ');
    return `  ${JSON.stringify(key)}: ${text}\n`;
  });
  return `${head}config:${lines.length === 0 ? ' {}\n' : `\n${printable(lines.join(''))}`}`;
}

/** YAML has more line breaks and fewer printable characters than JSON. */
function printable(json: string): string {
  return json.replace(
    /[\u007f-\u009f\u2028\u2029\ufeff\ufffe\uffff]/g,
    (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}
