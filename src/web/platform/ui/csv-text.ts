/** RFC 4180, as the server writes it. */
export function csvText(lines: readonly (readonly (string | number)[])[]): string {
  return lines.map((cells) => `${cells.map((cell) => csvCell(String(cell))).join(',')}\r\n`).join('');
}

/** Quoted if needed. A spreadsheet would run a value that begins like a formula; the leading quote prevents that. */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r\n＝＋－＠]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
