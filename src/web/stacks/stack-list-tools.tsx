import { useNavigate, useParams, useSearch } from '@tanstack/react-router';
import { Columns3, Download } from 'lucide-react';
import { ViewsButton } from '../platform/app/views/views-button.tsx';
import { Button, buttonClass } from '../platform/ui/button.tsx';
import { Menu, MenuItem } from '../platform/ui/menu.tsx';
import { chosenColumns, columnNames, stackColumns, toggleColumn } from './stack-columns.ts';
import { parseStackFilter } from './stack-filter.ts';
import styles from './stack-filter-bar.module.css';
import { stackListTexts } from './texts.tsx';

export function StackListTools() {
  const { organization } = useParams({ strict: false });
  const search = useSearch({ strict: false });
  const { columns: _, ...filter } = search;
  return (
    <div className={styles['tools']}>
      <ViewsButton page="stacks" search={parseStackFilter(search)} />
      <ColumnMenu />
      <a
        className={buttonClass({ kind: 'quiet', size: 'small' })}
        href={csvPath(organization, filter)}
        download="stacks.csv"
      >
        <Download size={15} aria-hidden="true" />
        {stackListTexts.csv}
      </a>
    </div>
  );
}

function ColumnMenu() {
  const { columns: inUrl } = useSearch({ strict: false });
  const navigate = useNavigate();
  const columns = chosenColumns(inUrl);
  return (
    <Menu
      align="end"
      trigger={
        <Button kind="quiet" size="small">
          <Columns3 size={15} aria-hidden="true" />
          {stackListTexts.columns}
        </Button>
      }
    >
      {stackColumns.map((column) => (
        <MenuItem
          key={column}
          isChosen={columns.includes(column)}
          onSelect={() =>
            void navigate({
              to: '.',
              replace: true,
              search: (before) => ({ ...before, columns: toggleColumn(columns, column) }),
            })
          }
        >
          {columnNames[column]}
        </MenuItem>
      ))}
    </Menu>
  );
}

/** The server generates the file from the filtered list, page by page. */
function csvPath(organization: string | undefined, filter: Readonly<Record<string, unknown>>): string {
  const given = Object.entries({ organization, ...filter }).flatMap(([name, value]) =>
    typeof value === 'string' && value.trim() !== '' ? [[name, value.trim()]] : [],
  );
  return `/trpc/download/stacks.csv?${new URLSearchParams(given).toString()}`;
}
