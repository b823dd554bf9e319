const pattern = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/** Whether the text has the format of the database's row ids. */
export function isUuid(text: string): boolean {
  return pattern.test(text);
}
