import { Download } from 'lucide-react';
import { Button } from './button.tsx';
import { csvTexts } from './texts.tsx';

/** Saves a table as a file. `read`: its lines, the names of the columns first. */
export function CsvButton({
  fileName,
  read,
}: {
  readonly fileName: string;
  readonly read: () => readonly (readonly (string | number)[])[];
}) {
  return (
    <Button
      kind="quiet"
      size="small"
      aria-label={csvTexts.save(fileName)}
      onClick={() => {
        const url = URL.createObjectURL(new Blob([csvText(read())], { type: 'text/csv;charset=utf-8' }));
        const link = document.createElement('a');
        link.href = url;
        link.download = fileName;
        link.click();
        // The browser reads the file after the click.
        setTimeout(() => URL.revokeObjectURL(url), 60_000);
      }}
    >
      <Download size={14} aria-hidden="true" />
      {csvTexts.csv}
    </Button>
  );
}

/** Lines of cells as CSV (RFC 4180), as the server writes it. */
function csvText(lines: readonly (readonly (string | number)[])[]): string {
  return lines.map((cells) => `${cells.map((cell) => csvCell(String(cell))).join(',')}\r\n`).join('');
}

/** Quoted where needed. Spreadsheets would run a value that begins like a formula; the quote in front prevents that. */
function csvCell(text: string): string {
  const safe = /^[=+\-@\t\r\n]/.test(text) ? `'${text}` : text;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}
