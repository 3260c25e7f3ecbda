"""The plots of the report and the forecast, as Altair charts in the units of people."""

import altair

# Altair refuses charts of more than 5,000 rows wherever one is turned into a document, picture or page. How much is
# drawn is decided by the plots themselves, so that no amount of data can take a report down.
altair.data_transformers.disable_max_rows()
