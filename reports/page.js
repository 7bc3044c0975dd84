'use strict';
(function () {
  // --- sorting: a click on a heading sorts by it, another turns it round; words come after numbers ---
  function key(cell) {
    const text = cell.dataset.v !== undefined ? cell.dataset.v : cell.textContent.trim();
    const number = text === '' ? NaN : Number(text);
    return { number: number, text: text };
  }
  function compare(a, b) {
    const aWord = Number.isNaN(a.number), bWord = Number.isNaN(b.number);
    if (aWord !== bWord) return aWord ? 1 : -1;
    return aWord ? a.text.localeCompare(b.text) : a.number - b.number;
  }
  function sort(heading) {
    const table = heading.closest('table'), body = table.tBodies[0], column = heading.cellIndex;
    const down = heading.getAttribute('aria-sort') === 'ascending';
    for (const other of table.tHead.rows[0].cells) other.removeAttribute('aria-sort');
    heading.setAttribute('aria-sort', down ? 'descending' : 'ascending');
    const rows = Array.from(body.rows).map((row, place) => ({ row: row, place: place, key: key(row.cells[column]) }));
    rows.sort((a, b) => (down ? compare(b.key, a.key) : compare(a.key, b.key)) || a.place - b.place);
    for (const entry of rows) body.appendChild(entry.row);
  }
  for (const heading of document.querySelectorAll('thead th')) {
    const button = document.createElement('button');
    button.type = 'button';
    while (heading.firstChild) button.appendChild(heading.firstChild);
    button.addEventListener('click', () => sort(heading));
    heading.appendChild(button);
  }

  // --- filter: rows of tables that hold every word ---
  const tools = document.getElementById('tools'), filter = document.createElement('input');
  filter.type = 'search';
  filter.placeholder = 'Rows with these words';
  filter.setAttribute('aria-label', 'Show only rows of tables with these words');
  filter.addEventListener('input', () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const row of document.querySelectorAll('tbody tr')) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
    }
    hideEmpty(words.length > 0);
  });
  // Tables without a row that fits, and sections, with their links, that then show none, are out of the way.
  function hideEmpty(filtering) {
    let heading = null, found = true;
    const between = [];
    for (const name of document.querySelectorAll('nav .section')) name.hidden = filtering;
    const close = () => {
      for (const element of between) element.classList.toggle('out', filtering && !found);
      const link = heading && document.querySelector('nav a[href="#' + heading.id + '"]');
      if (link) link.parentNode.hidden = filtering && !found;
      between.length = 0;
      found = false;
    };
    for (const element of document.querySelector('main').children) {
      if (element.tagName === 'H2') {
        close();
        heading = element;
      }
      between.push(element);
      if (!element.matches('section.table')) continue;
      const fits = element.querySelector('tbody tr:not([hidden])') !== null;
      element.hidden = filtering && !fits;
      found = found || fits;
    }
    close();
  }
  tools.appendChild(filter);

  // --- light or dark: as the system says, until the button is used ---
  const theme = document.createElement('button'), root = document.documentElement;
  theme.type = 'button';
  const dark = () => root.dataset.theme ? root.dataset.theme === 'dark' : matchMedia('(prefers-color-scheme: dark)').matches;
  const label = () => { theme.textContent = dark() ? 'Light' : 'Dark'; };
  theme.addEventListener('click', () => { root.dataset.theme = dark() ? 'light' : 'dark'; label(); });
  matchMedia('(prefers-color-scheme: dark)').addEventListener('change', label);
  label();
  tools.appendChild(theme);
})();
